"""An authority and what it has signed, made by `openssl` for one test."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from keys.store.etcd_channel import Credentials

DAYS = "2"
SERVER = "etcd"
CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True)
class Authority:
    """`ca.pem` and `ca.key` in a folder of its own; `issue` adds NAME.pem and NAME.key (0600)."""

    folder: Path

    @classmethod
    def made(cls, folder: Path) -> "Authority":
        folder.mkdir()
        authority = cls(folder)
        authority._openssl("req", "-x509", *CURVE, *authority._files("ca"), "-subj", "/CN=ca")
        return authority

    def path(self, name: str) -> Path:
        return self.folder / name

    def issue(self, name: str) -> None:
        """For server and client alike; it names 127.0.0.1 and *name*."""
        request, extensions = self.path(f"{name}.csr"), self.path(f"{name}.ext")
        extensions.write_text(f"subjectAltName=DNS:{name},IP:127.0.0.1\n")
        key = str(self.path(f"{name}.key"))
        self._openssl("req", *CURVE, "-keyout", key, "-out", str(request), "-subj", f"/CN={name}")
        self._openssl(
            *("x509", "-req", "-in", str(request), "-days", DAYS, "-extfile", str(extensions)),
            *("-CA", str(self.path("ca.pem")), "-CAkey", str(self.path("ca.key"))),
            *("-CAcreateserial", "-out", str(self.path(f"{name}.pem"))),
        )

    def credentials(self, client: str | None) -> Credentials:
        certificate, private_key = (
            (self.path(f"{client}.pem").read_bytes(), self.path(f"{client}.key").read_bytes())
            if client
            else (None, None)
        )
        ca = self.path("ca.pem").read_bytes()
        return Credentials(ca, certificate, private_key, SERVER)

    def _files(self, name: str) -> tuple[str, ...]:
        key, made = self.path(f"{name}.key"), self.path(f"{name}.pem")
        return ("-keyout", str(key), "-out", str(made), "-days", DAYS)

    def _openssl(self, *words: str) -> None:
        program = shutil.which("openssl")
        assert program, "no openssl on PATH"
        ran = subprocess.run(
            [program, *words], capture_output=True, env={"PATH": os.environ["PATH"]}
        )
        assert ran.returncode == 0, ran.stderr.decode()


def serving_flags(authority: Authority) -> tuple[str, ...]:
    """An etcd that shows a certificate to its clients and wants one of them."""
    return (
        f"--cert-file={authority.path(SERVER + '.pem')}",
        f"--key-file={authority.path(SERVER + '.key')}",
        f"--trusted-ca-file={authority.path('ca.pem')}",
        "--client-cert-auth",
    )
