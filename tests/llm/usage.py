"""A hook for LiteLLM behind a gateway that charges by the usage that LiteLLM reports.

Every stream ends with its usage, even if the client asks for none. That also needs `always_include_stream_usage: true`,
or LiteLLM removes the usage again. And a request is served by the model of its route, or not at all.
"""

from litellm.integrations.custom_logger import CustomLogger

# With these a client names models that LiteLLM tries if the first fails, whatever they cost.
OTHER_MODELS = ("fallbacks", "context_window_fallbacks", "content_policy_fallbacks")


class AlwaysReport(CustomLogger):
    async def async_pre_call_hook(self, user_api_key_dict, cache, data, call_type):
        for field in OTHER_MODELS:
            data.pop(field, None)
        if data.get("stream"):
            # LiteLLM also streams for other values than true, such as 1, but then in another format.
            data["stream"] = True
            data["stream_options"] = {"include_usage": True}
            # Some providers read the options from here, where they are already those of the client.
            data["litellm_logging_obj"].stream_options = data["stream_options"]
        return data


always_report = AlwaysReport()
