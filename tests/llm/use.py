"""Calls an LLM route with OpenAI's client. Each line is BASE, KEY, MODEL, SCENARIO and perhaps N.

Scenarios: `plain`, `stream`, `abort` (closes a stream after its first chunk), and `race` (N calls at once).
"""

import concurrent.futures
from collections import Counter

import openai
from lines import serve


def metering(headers):
    names = ("x-bds-credit-charged", "x-bds-credit-balance", "x-bds-credit-held", "x-bds-request-id")
    return {name.removeprefix("x-bds-").replace("-", "_"): headers.get(name) for name in names}


def tokens(usage):
    return usage and {"prompt": usage.prompt_tokens, "completion": usage.completion_tokens}


def plain(client, request):
    response = client.chat.completions.with_raw_response.create(**request)
    completion = response.parse()
    text = completion.choices[0].message.content
    return {"status": response.status_code, "text": text, "usage": tokens(completion.usage), **metering(response.headers)}


def stream(client, request, aborted=False):
    response = client.chat.completions.with_raw_response.create(**request, stream=True)
    text, usage, error = "", None, None
    try:
        for chunk in response.parse():
            text += (chunk.choices and chunk.choices[0].delta.content) or ""
            usage = chunk.usage or usage
            if aborted:
                break
    except openai.APIError as failure:
        error = failure.message
    if aborted:
        response.http_response.close()
    return {"status": response.status_code, "text": text, "usage": tokens(usage), "error": error, **metering(response.headers)}


def refused(failure):
    # The gateway's `error` is a code, that of LLM services a document.
    code = failure.body if isinstance(failure.body, str) else failure.code
    return {"status": failure.status_code, "code": code, **metering(failure.response.headers)}


def attempt(run, *args):
    try:
        return run(*args)
    except openai.APIStatusError as failure:
        return refused(failure)


def race(client, request, count):
    with concurrent.futures.ThreadPoolExecutor(count) as threads:
        results = list(threads.map(lambda _: attempt(plain, client, request), range(count)))
    used = [result["usage"] for result in results if result["status"] == 200]
    return {
        "statuses": Counter(str(result["status"]) for result in results),
        "prompt": sum(usage["prompt"] for usage in used),
        "completion": sum(usage["completion"] for usage in used),
    }


scenarios = {"plain": plain, "stream": stream, "abort": lambda *call: stream(*call, aborted=True), "race": race}


def run(arguments):
    base, key, model, scenario, *counts = arguments
    client = openai.OpenAI(base_url=f"{base}/v1", api_key=key, max_retries=0)
    request = {"model": model, "messages": [{"role": "user", "content": "Tell me a story."}]}
    return attempt(scenarios[scenario], client, request, *map(int, counts))


serve(run)
