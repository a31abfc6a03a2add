"""Calls the routes of the shipped catalogue with the official clients. Each line is BASE, KEY, SDK, SCENARIO and PROMPT.

The result is what the client got, or the error that it raised.
"""

import anthropic
import openai
from google import genai
from google.genai import types
from lines import serve
from pydantic import BaseModel

parameters = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


class Word(BaseModel):
    word: str


def messages(prompt):
    return [{"role": "user", "content": prompt}]


class OpenAi:
    def __init__(self, base, key, prompt):
        self.prompt, self.messages = prompt, messages(prompt)
        self.client = openai.OpenAI(base_url=f"{base}/v1", api_key=key, max_retries=0)

    def plain(self):
        completion = self.client.chat.completions.create(model="small", messages=self.messages)
        return {"text": completion.choices[0].message.content, "id": completion._request_id}

    def limits(self):
        create = self.client.chat.completions.with_raw_response.create
        headers = create(model="small", messages=self.messages, max_tokens=40).headers
        return {"text": headers.get("x-ratelimit-remaining-tokens"), "limit": headers.get("x-ratelimit-limit-tokens")}

    def unsold(self):
        return self.client.chat.completions.create(model="unsold", messages=self.messages).model_dump()

    def stream(self, **more):
        chunks = list(self.client.chat.completions.create(model="small", messages=self.messages, stream=True, **more))
        text = "".join((chunk.choices[0].delta.content or "") if chunk.choices else "" for chunk in chunks)
        return {"text": text, "reported": any(chunk.usage for chunk in chunks)}

    def stream_with_usage(self):
        return self.stream(stream_options={"include_usage": True})

    def tools(self):
        tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
        completion = self.client.chat.completions.create(model="small", messages=self.messages, tools=[tool])
        return {"text": completion.choices[0].message.tool_calls[0].function.name}

    def structured(self):
        completion = self.client.chat.completions.parse(model="small", messages=self.messages, response_format=Word)
        return {"text": completion.choices[0].message.parsed.word}

    def responses(self):
        return {"text": self.client.responses.create(model="small", input=self.prompt).output_text}

    def responses_stream(self):
        events = self.client.responses.create(model="small", input=self.prompt, stream=True)
        return {"text": "".join(event.delta for event in events if event.type == "response.output_text.delta")}

    def models(self):
        return {"text": self.client.models.list().data[0].id}

    def embeddings(self):
        return {"text": str(len(self.client.embeddings.create(model="small", input=[self.prompt, "b"]).data))}


class Anthropic:
    def __init__(self, base, key, prompt):
        self.messages = messages(prompt)
        self.client = anthropic.Anthropic(base_url=base, api_key=key, max_retries=0)

    def plain(self):
        message = self.client.messages.create(model="small", max_tokens=1000, messages=self.messages)
        return {"text": message.content[0].text, "id": message._request_id}

    def limits(self):
        create = self.client.messages.with_raw_response.create
        headers = create(model="small", max_tokens=40, messages=self.messages).headers
        named = {name: headers.get(f"anthropic-ratelimit-tokens-{name}") for name in ["limit", "reset"]}
        return {"text": headers.get("anthropic-ratelimit-tokens-remaining"), **named}

    def unsold(self):
        return self.client.messages.create(model="unsold", max_tokens=1000, messages=self.messages).model_dump()

    def stream(self):
        with self.client.messages.stream(model="small", max_tokens=1000, messages=self.messages) as stream:
            return {"text": "".join(stream.text_stream)}

    def tools(self):
        tool = {"name": "f", "input_schema": parameters}
        message = self.client.messages.create(model="small", max_tokens=1000, messages=self.messages, tools=[tool])
        return {"text": message.content[0].name}

    def structured(self):
        message = self.client.messages.parse(model="small", max_tokens=1000, messages=self.messages, output_format=Word)
        return {"text": message.parsed_output.word}

    def count(self):
        return {"text": str(self.client.messages.count_tokens(model="small", messages=self.messages).input_tokens)}


class Google:
    def __init__(self, base, key, prompt):
        self.prompt = prompt
        # Its connections are closed once nothing refers to it.
        self.client = genai.Client(api_key=key, http_options=types.HttpOptions(base_url=base))
        self.models = self.client.models

    def plain(self):
        config = types.GenerateContentConfig(thinking_config=types.ThinkingConfig(thinking_budget=100))
        return {"text": self.models.generate_content(model="small", contents=self.prompt, config=config).text}

    def unsold(self):
        return {"text": self.models.generate_content(model="unsold", contents=self.prompt).text}

    def stream(self):
        chunks = self.models.generate_content_stream(model="small", contents=self.prompt)
        return {"text": "".join(chunk.text or "" for chunk in chunks)}

    def tools(self):
        tool = types.Tool(function_declarations=[{"name": "f", "parameters_json_schema": parameters}])
        automatic = types.AutomaticFunctionCallingConfig(disable=True)
        config = types.GenerateContentConfig(tools=[tool], automatic_function_calling=automatic)
        return {"text": self.models.generate_content(model="small", contents=self.prompt, config=config).function_calls[0].name}

    def structured(self):
        config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=Word)
        return {"text": self.models.generate_content(model="small", contents=self.prompt, config=config).parsed.word}

    def count(self):
        return {"text": str(self.models.count_tokens(model="small", contents=self.prompt).total_tokens)}


def error(failure):
    return {
        "status": getattr(failure, "status_code", getattr(failure, "code", None)),
        "code": getattr(failure, "code", None) or getattr(failure, "type", None),
        "message": getattr(failure, "message", str(failure)),
        "id": getattr(failure, "request_id", None),
    }


clients = {"openai": OpenAi, "anthropic": Anthropic, "google": Google}


def run(arguments):
    base, key, sdk, scenario, prompt = arguments
    try:
        return getattr(clients[sdk](base, key, prompt), scenario)()
    except (openai.APIError, anthropic.APIError, genai.errors.APIError) as failure:
        return {"error": error(failure)}


serve(run)
