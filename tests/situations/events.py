"""Makes the event that each coding agent passes to its hook, and reads the text in the hook's answer."""

import json
from datetime import UTC, datetime


def stamp(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"


def payload(event, cwd, home, number):
    """Makes the JSON that the client of `event` passes to its hook. `number` is the number of the call in the
    situation."""
    client, kind = event["client"], event["kind"]
    session = f"7b1d9c52-{event['session']}"
    if client == "cursor":
        return {
            "hook_event_name": "sessionStart",
            "conversation_id": session,
            "generation_id": "g",
            "workspace_roots": [cwd],
            "cursor_version": "2.0",
        }
    body = {"session_id": session, "transcript_path": f"{home}/.{client}/t.jsonl", "cwd": cwd}
    if client == "gemini":
        body["timestamp"] = stamp(datetime.now(UTC))
    elif client == "codex":
        body |= {"model": "gpt-5-codex", "permission_mode": "default"}
        if kind != "start":
            body["turn_id"] = f"turn_{number}"
    elif kind != "start":
        body |= {"prompt_id": f"p{number}", "permission_mode": "default"}
    return body | BODIES[kind](event, client, event.get("call") or f"toolu_{number:04}")


def start(event, client, call):
    return {"hook_event_name": "SessionStart", "source": event.get("source", "startup")}


def subagent(event, client, call):
    return {"hook_event_name": "SubagentStart", "agent_id": event["agent"], "agent_type": "general-purpose"}


def prompt(event, client, call):
    name = "BeforeAgent" if client == "gemini" else "UserPromptSubmit"
    return {"hook_event_name": name, "prompt": event["prompt"]}


def failure(event, client, call):
    command, error = event["command"], event["error"]
    if client == "gemini":
        said = (
            f"Command: {command}\nDirectory: (root)\nOutput: {error}\nError: (none)\n"
            f"Exit Code: {event['code']}\nSignal: 0"
        )
        return {
            "hook_event_name": "AfterTool",
            "tool_name": "run_shell_command",
            "tool_input": {"command": command, "description": "Run the command"},
            "tool_response": {"llmContent": said, "returnDisplay": error},
        }
    if client == "codex":  # The text says what was written, not that the command failed.
        return {
            "hook_event_name": "PostToolUse",
            "tool_name": "Bash",
            "tool_use_id": call,
            "tool_input": {"command": command},
            "tool_response": error.partition("\n")[2],
        }
    return {
        "hook_event_name": "PostToolUseFailure",
        "tool_name": "Bash",
        "tool_input": {"command": command, "description": "Run the command"},
        "tool_use_id": call,
        "error": error,
        "is_interrupt": False,
        "duration_ms": 311,
    }


def success(event, client, call):
    return {
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": event["command"], "description": "Run the command"},
        "tool_use_id": call,
        "tool_response": {"stdout": "ok", "stderr": "", "interrupted": False, "isImage": False},
        "duration_ms": 311,
    }


BODIES = {"start": start, "subagent": subagent, "prompt": prompt, "fail": failure, "ok": success}


def told(client, asked, out):
    """Returns the text for the model, and whether the client could read the answer."""
    if not out.strip():
        return "", True
    try:
        said = json.loads(out)
        if client == "cursor":
            return said["additional_context"], True
        said = said["hookSpecificOutput"]
        return said["additionalContext"], said["hookEventName"] == asked["hook_event_name"]
    except (ValueError, KeyError, TypeError):
        return "", False
