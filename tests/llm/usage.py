"""A hook for LiteLLM: every stream ends with the tokens it used, even if the client asks for no report.

It needs `always_include_stream_usage: true`, or LiteLLM removes reports that the client did not ask for.
"""

from litellm.integrations.custom_logger import CustomLogger


class AlwaysReport(CustomLogger):
    async def async_pre_call_hook(self, user_api_key_dict, cache, data, call_type):
        if data.get("stream"):
            # LiteLLM also streams for other values than true, such as 1, but then in another format.
            data["stream"] = True
            data["stream_options"] = {"include_usage": True}
            # Some providers read the options from here, where they are already those of the client.
            data["litellm_logging_obj"].stream_options = data["stream_options"]
        return data


always_report = AlwaysReport()
