"""gRPC through the gateway: Python's grpcio on both sides, HTTP/2 without TLS."""

import concurrent.futures
import threading

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from .gateway import THREE, Gateway
from .process import PATIENCE_SECONDS, World, eventually, free_port

N_MESSAGES = 1000


class EchoServer(grpc.GenericRpcHandler):
    """A server of messages that are bytes, so that no stubs are needed."""

    def __init__(self):
        self.cancelled = threading.Event()

    def service(self, details):
        method = details.method.rpartition("/")[2]
        unary, stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        handlers = {
            "Echo": unary(self.echo),
            "Fail": unary(self.fail),
            "Count": stream(self.count),
            "Flood": stream(self.flood),
            "Wait": unary(self.wait),
            "Talk": grpc.stream_stream_rpc_method_handler(self.talk),
        }
        return handlers.get(method)

    def echo(self, message, context):
        context.send_initial_metadata([("x-first", "head")])
        context.set_trailing_metadata([("x-last", "trailer"), ("x-last-bin", b"\x00\xff")])
        return message

    def fail(self, _, context):
        context.set_trailing_metadata([("x-last", "trailer")])
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not now: 100 %, ümlaut")

    def count(self, message, context):
        context.set_trailing_metadata([("x-last", "trailer")])
        for number in range(int(message)):
            yield str(number).encode()

    def flood(self, _, context):
        while context.is_active():
            yield b"x" * 10_000

    def talk(self, messages, _):
        yield from messages

    def wait(self, _, context):
        context.add_callback(self.cancelled.set)
        self.cancelled.wait(PATIENCE_SECONDS)
        return b""


class Grpc(World):
    def setUp(self):
        super().setUp()
        self.ports = [free_port(), free_port()]
        settings = f"""
gateway:
  upstreams:
    echo: {{ targets: [http://127.0.0.1:{self.ports[0]}], protocol: http2 }}
    both: {{ targets: [{', '.join(f'http://127.0.0.1:{port}' for port in self.ports)}], protocol: http2 }}
  routes:
    - name: both
      header: {{ x-both: "1" }}
      upstream: both
      retry: {{ on: [connect, reset] }}
    - path: /*
      upstream: echo
"""
        self.gateway = Gateway(self, settings)
        self.echo = EchoServer()
        self.server = self.start_server(self.ports[0])
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.gateway.port}")
        self.addCleanup(self.channel.close)

    def start_server(self, port: int) -> grpc.Server:
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), handlers=[self.echo])
        self.assertEqual(server.add_insecure_port(f"127.0.0.1:{port}"), port)
        server.start()
        self.addCleanup(lambda: server.stop(0).wait())
        return server

    def call(self, method, message=b"hello", headers=None, timeout=PATIENCE_SECONDS):
        metadata = list((headers or {}).items())
        return self.channel.unary_unary(f"/test.Echo/{method}").with_call(message, timeout, metadata)

    def failure(self, *arguments, **options) -> grpc.RpcError:
        with self.assertRaises(grpc.RpcError) as raised:
            self.call(*arguments, **options)
        return raised.exception

    def test_a_call_with_metadata_and_trailers(self):
        answer, call = self.call("Echo")
        self.assertEqual(answer, b"hello")
        self.assertEqual(call.code(), grpc.StatusCode.OK)
        self.assertEqual(dict(call.initial_metadata())["x-first"], "head")
        trailers = dict(call.trailing_metadata())
        self.assertEqual((trailers["x-last"], trailers["x-last-bin"]), ("trailer", b"\x00\xff"))
        large = b"x" * 3_000_000
        self.assertEqual(self.call("Echo", large)[0], large)

    def test_an_error_of_the_server_is_its_own(self):
        error = self.failure("Fail")
        self.assertEqual(error.code(), grpc.StatusCode.FAILED_PRECONDITION)
        self.assertEqual(error.details(), "not now: 100 %, ümlaut")
        self.assertEqual(dict(error.trailing_metadata())["x-last"], "trailer")
        self.assertEqual(self.failure("Nothing").code(), grpc.StatusCode.UNIMPLEMENTED)

    def test_a_stream_of_answers_ends_with_trailers(self):
        call = self.channel.unary_stream("/test.Echo/Count")(str(N_MESSAGES).encode(), timeout=PATIENCE_SECONDS)
        self.assertEqual([int(it) for it in call], list(range(N_MESSAGES)))
        self.assertEqual(call.code(), grpc.StatusCode.OK)
        self.assertEqual(dict(call.trailing_metadata())["x-last"], "trailer")

    def test_both_sides_talk_in_turn(self):
        heard = threading.Semaphore(1)

        def questions():
            # The next one is asked after the answer to the last: nothing may be held back on the way.
            for number in range(100):
                if not heard.acquire(timeout=PATIENCE_SECONDS):
                    return
                yield str(number).encode()

        answers = []
        for answer in self.channel.stream_stream("/test.Echo/Talk")(questions(), timeout=PATIENCE_SECONDS):
            answers.append(int(answer))
            heard.release()
        self.assertEqual(answers, list(range(100)))

    def test_many_calls_at_once(self):
        calls = [self.channel.unary_unary("/test.Echo/Echo").future(str(it).encode()) for it in range(500)]
        answers = [int(call.result(PATIENCE_SECONDS)) for call in calls]
        self.assertEqual(answers, list(range(500)))

    def test_a_stream_that_nobody_reads_holds_up_no_other(self):
        """On the same connections, to the gateway and from there to the server."""
        with self.gateway.flat_memory():
            unread = [self.channel.unary_stream("/test.Echo/Flood")(b"") for _ in range(3)]
            for call in unread:
                self.assertEqual(len(next(call)), 10_000)
            for number in range(100):
                self.assertEqual(self.call("Echo", str(number).encode())[0], str(number).encode())
        for call in unread:
            call.cancel()

    def test_servers_that_restart_in_turn_are_not_noticed(self):
        servers = [self.server, self.start_server(self.ports[1])]
        over, failures, answered = threading.Event(), [], []

        def ask():
            while not over.is_set():
                try:
                    answered.append(self.call("Echo", headers={"x-both": "1"})[0])
                except grpc.RpcError as error:
                    failures.append(error.code())

        clients = [threading.Thread(target=ask) for _ in range(4)]
        self.addCleanup(over.set)
        for client in clients:
            client.start()

        def until_more():
            wanted = len(answered) + 100
            eventually("a hundred calls more", lambda: len(answered) >= wanted)

        for which in (0, 1, 0):
            until_more()
            # It says goodbye to its connections and answers what it has.
            servers[which].stop(PATIENCE_SECONDS).wait()
            until_more()
            servers[which] = self.start_server(self.ports[which])
        until_more()
        over.set()
        for client in clients:
            client.join()
        # As it stops, grpcio cancels calls that it has already taken, without a gateway too; those must not be sent again.
        self.assertLessEqual(set(failures), {grpc.StatusCode.CANCELLED})
        self.assertLess(len(failures), len(answered) / 10)

    def test_a_denied_caller_is_told_when_to_come_back(self):
        for _ in range(3):
            self.call("Echo", headers=THREE)
        error = self.failure("Echo", headers=THREE)
        self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        status = rpc_status.from_call(error)
        self.assertEqual(status.message, error.details())
        info = error_details_pb2.RetryInfo()
        self.assertTrue(status.details[0].Unpack(info))
        self.assertGreaterEqual(info.retry_delay.seconds, 1)
        headers = dict(error.initial_metadata()) | dict(error.trailing_metadata())
        self.assertEqual(headers["retry-after"], str(info.retry_delay.seconds))
        self.assertEqual(self.call("Echo")[0], b"hello", "others are not denied")
        stream = self.channel.unary_stream("/test.Echo/Count")(b"1", metadata=list(THREE.items()))
        with self.assertRaises(grpc.RpcError) as raised:
            list(stream)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)

    def test_a_call_that_is_given_up_ends_at_the_server_too(self):
        self.assertEqual(self.failure("Wait", timeout=0.5).code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.assertTrue(self.echo.cancelled.wait(PATIENCE_SECONDS))

    def test_a_server_that_is_down_is_unavailable(self):
        self.server.stop(0).wait()
        for _ in range(3):
            self.assertEqual(self.failure("Echo").code(), grpc.StatusCode.UNAVAILABLE)
