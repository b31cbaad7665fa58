"""Messages and stubs, made from the repository's proto/ folder when the suite starts."""

import atexit
import importlib
import pathlib
import shutil
import sys
import tempfile

from grpc_tools import protoc

ROOT = pathlib.Path(__file__).resolve().parents[3]


def _make() -> None:
    made = tempfile.mkdtemp(prefix="tidegate-stubs-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    protos = ROOT / "proto"
    well_known = pathlib.Path(protoc.__file__).parent / "_proto"
    # grpcio-health-checking and grpcio-reflection bring their own, and a name may be registered only once.
    files = sorted(str(path) for path in protos.rglob("*.proto") if "grpc" not in path.relative_to(protos).parts)
    failed = protoc.main(
        ["protoc", f"-I{protos}", f"-I{well_known}", f"--python_out={made}", f"--grpc_python_out={made}", *files]
    )
    if failed:
        raise SystemExit(f"protoc failed on {protos}")
    sys.path.insert(0, made)


_make()
rls = importlib.import_module("envoy.service.ratelimit.v3.rls_pb2")
rls_grpc = importlib.import_module("envoy.service.ratelimit.v3.rls_pb2_grpc")
ratelimit = importlib.import_module("envoy.extensions.common.ratelimit.v3.ratelimit_pb2")
