"""The client that asks for plans."""

from keys.model.records import ClientRequirements

CLIENT = ClientRequirements(submitted_by="anna", request_id="r", statement={})
