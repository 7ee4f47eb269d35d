"""A package as a team writes it for `verifiers`, and a harness that asks the model in this process."""

import httpx
import verifiers.v1 as vf
from verifiers.v1.runtimes import ProgramResult

from harness.adapters.verifiers import KernelEnv, KernelTaskset

__all__ = ["KernelEnv", "KernelTaskset", "ScriptedHarness"]


class ScriptedHarness(vf.Harness[vf.HarnessConfig]):
    """One request a turn, with all that was said before; verifiers' own harnesses install programs from a network."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data, **more):
        prompt = data.prompt
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else [said(one) for one in prompt]
        async with httpx.AsyncClient(timeout=60.0) as http:
            answer = await http.post(
                f"{endpoint.rstrip('/')}/chat/completions",
                json={"model": ctx.model, "messages": messages},
                headers={"Authorization": f"Bearer {secret}"},
            )
        return ProgramResult(exit_code=int(answer.is_error), stdout="", stderr=answer.text if answer.is_error else "")


def said(message):
    return {"role": message.role, "content": message.content}
