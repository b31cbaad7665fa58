"""nginx asks Tidegate by auth_request, with the file in deploy/."""

from .process import ROOT, World, free_port, tool
from .proxied import Proxied
from .tidegate import Tidegate, start_api


class Nginx(Proxied, World):
    def setUp(self):
        super().setUp()
        self.clients = free_port()
        self.tidegate = Tidegate(self)
        config = self.configure(
            ROOT / "deploy/nginx/nginx.conf",
            **{
                "listen 127.0.0.1:8000": f"listen 127.0.0.1:{self.clients}",
                "server 127.0.0.1:9000": f"server 127.0.0.1:{start_api(self)}",
                "domain=example": "domain=world",
                "server 127.0.0.1:8080": f"server 127.0.0.1:{self.tidegate.http}",
            },
        )
        command = [tool("nginx"), "-p", str(self.folder), "-e", "stderr", "-c", str(config)]
        master = self.start(*command, port=self.clients, name="nginx")
        # Before it is killed: only a master that ends by itself takes its workers along.
        self.addCleanup(self.stop, master, "terminate")
