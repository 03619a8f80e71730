"""The options of a command that reaches etcd itself; the same settings as a server's."""

from pathlib import Path
from typing import Annotated

import typer

CaFile = Annotated[
    Path | None,
    typer.Option(
        "--etcd-ca-file",
        envvar="METASRV_SERVER_ETCD_CA_FILE",
        help="PEM file of the issuer of etcd's certificates.",
        metavar="FILE",
    ),
]
CertFile = Annotated[
    Path | None,
    typer.Option(
        "--etcd-cert-file",
        envvar="METASRV_SERVER_ETCD_CERT_FILE",
        help="PEM file of the client certificate for etcd.",
        metavar="FILE",
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--etcd-key-file",
        envvar="METASRV_SERVER_ETCD_KEY_FILE",
        help="PEM file of the key of that certificate, mode 0600.",
        metavar="FILE",
    ),
]
ServerName = Annotated[
    str | None,
    typer.Option(
        "--etcd-server-name",
        envvar="METASRV_SERVER_ETCD_SERVER_NAME",
        help="A name that the certificate of every endpoint has.",
        metavar="NAME",
    ),
]
User = Annotated[
    str | None,
    typer.Option(
        "--etcd-user",
        envvar="METASRV_SERVER_ETCD_USER",
        help="Name of the etcd user.",
        metavar="NAME",
    ),
]
PasswordFile = Annotated[
    Path | None,
    typer.Option(
        "--etcd-password-file",
        envvar="METASRV_SERVER_ETCD_PASSWORD_FILE",
        help="File with the password of that user, mode 0600.",
        metavar="FILE",
    ),
]
