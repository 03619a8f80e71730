"""The client that asks for plans."""

from keys.model.records import Submission

CLIENT = Submission(submitted_by="anna", request_id="r", statement={})
