"""Simulates a model that plays prepared turns. It serves the APIs of three vendors on a loopback port and records their
requests."""

import http.server
import json
import threading
from collections.abc import Callable


class Model:
    """Plays `turns` in order, one for each request, and then answers "done". Keeps every request in `requests`.

    A turn is `(tool, input)`, or a function that returns a turn when the request arrives. `when` maps texts to turns: a
    request that contains such a text gets that turn, once. An agent and its subagents need this, because they send
    requests at the same time and in no fixed order. A request without tools is a side task of a client, such as a title
    or a summary. Its answer is "done", and the request is not kept.
    """

    def __init__(self) -> None:
        self.turns: list[tuple[str, dict] | Callable[[], tuple[str, dict]]] = []
        self.when: dict[str, tuple[str, dict]] = {}
        self.requests: list[dict] = []
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def next(self, request: dict) -> tuple[int, tuple[str, dict] | None]:
        """Returns the number of a request and the turn that answers it."""
        if not request.get("tools"):
            return 0, None
        self.requests.append(request)
        read = json.dumps(request)
        for text in [text for text in self.when if text in read]:
            return len(self.requests), self.when.pop(text)
        turn = self.turns.pop(0) if self.turns else None
        return len(self.requests), turn() if callable(turn) else turn

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(model) -> type:  # noqa: N805
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                self.answer("application/json", b'{"object":"list","data":[],"models":[]}')

            def do_HEAD(self) -> None:
                self.answer("application/json", b"")

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if self.path.endswith("/responses"):
                    self.stream(responses(*model.next(body)))
                elif ":streamGenerateContent" in self.path:
                    model.next(body)
                    self.answer("text/event-stream", f"data: {json.dumps(GENERATED)}\r\n\r\n".encode())
                elif "count_tokens" in self.path:
                    self.answer("application/json", b'{"input_tokens":10}')
                elif body.get("stream"):
                    self.stream(messages(*model.next(body), body["model"]))
                else:
                    message = json.dumps(message_of(*model.next(body), body.get("model"))).encode()
                    self.answer("application/json", message)

            def stream(self, events: list[dict]) -> None:
                lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
                self.answer("text/event-stream", "".join(lines).encode())

            def answer(self, kind: str, body: bytes) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

        return Handler


Turn = tuple[str, dict] | None

# The answer to every call of Google's API. No turn is played there.
GENERATED = {
    "candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": "done"}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
}


def message_of(number: int, turn: Turn, model: str | None) -> dict:
    """Makes an answer of Anthropic's Messages API."""
    block, stop = {"type": "text", "text": "done"}, "end_turn"
    if turn:
        block = {"type": "tool_use", "id": f"toolu_{number:02}", "name": turn[0], "input": turn[1]}
        stop = "tool_use"
    usage = {"input_tokens": 1, "output_tokens": 1}
    about = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model}
    return about | {"content": [block], "stop_reason": stop, "stop_sequence": None, "usage": usage}


def messages(number: int, turn: Turn, model: str) -> list[dict]:
    """Makes an answer of Anthropic's Messages API as a stream."""
    whole = message_of(number, turn, model)
    (block,), stop = whole["content"], whole["stop_reason"]
    if turn:
        start, delta = block | {"input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    else:
        start, delta = block | {"text": ""}, {"type": "text_delta", "text": block["text"]}
    return [
        {"type": "message_start", "message": whole | {"content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]


def responses(number: int, turn: Turn) -> list[dict]:
    """Makes an answer of OpenAI's Responses API as a stream. A dot in a tool's name separates the namespace from the
    name."""
    if turn:
        namespace, _, name = turn[0].rpartition(".")
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": name}
        item |= {"arguments": json.dumps(turn[1])} | ({"namespace": namespace} if namespace else {})
    else:
        text = {"type": "output_text", "text": "done", "annotations": []}
        item = {"type": "message", "id": f"m{number}", "role": "assistant", "content": [text]}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2} | details
    return [
        {"type": "response.created", "response": {"id": f"resp_{number}"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": f"resp_{number}", "usage": usage}},
    ]
