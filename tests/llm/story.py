"""Models for LiteLLM that need no network: they tell stories of known length, and report one token per word.

The model's name says what a story is like: WORDS-PAUSE, such as `story/20-100`: 20 words, and in a stream 100
milliseconds before each. A third part is how many words are sent before the model breaks: `story/20-0-5`.
"""

import asyncio

from litellm import CustomLLM, ModelResponse, Usage
from litellm.llms.custom_llm import CustomLLMError


def parts(model):
    """Words, pause before each in seconds, and words before it breaks (none: it does not)."""
    words, pause, *breaks = map(int, model.split("-"))
    return words, pause / 1000, *(breaks or [None])


def word(number):
    # LiteLLM ends streams that repeat the same text.
    return f" {number}" if number else "0"


def usage(messages, words):
    prompt = sum(len(str(message["content"]).split()) for message in messages)
    return {"prompt_tokens": prompt, "completion_tokens": words, "total_tokens": prompt + words}


class Story(CustomLLM):
    async def acompletion(self, model, messages, model_response: ModelResponse, **_):
        words, pause, breaks = parts(model)
        await asyncio.sleep(pause)
        if breaks is not None:
            raise CustomLLMError(status_code=500, message="the model broke")
        model_response.choices[0].message.content = "".join(word(number) for number in range(words))
        model_response.usage = Usage(**usage(messages, words))
        return model_response

    async def astreaming(self, model, messages, **_):
        words, pause, breaks = parts(model)
        for sent in range(words):
            await asyncio.sleep(pause)
            if sent == breaks:
                raise CustomLLMError(status_code=500, message="the model broke")
            yield {"text": word(sent), "is_finished": False, "finish_reason": None, "usage": None, "index": 0}
        end = {"text": "", "is_finished": True, "finish_reason": "stop", "index": 0}
        yield {**end, "usage": usage(messages, words)}


story = Story()
