-- Asks metering before a request is forwarded. HAProxy has no such directive of its own, so this uses its HTTP client.
-- Every response but 200 goes to the client: a refusal, or a 204 to a CORS preflight. Without a response, the client
-- gets 503.

local URL = "http://127.0.0.1:8787/authorize"

-- Headers of the connection to the client, which are not part of the authorization request.
local OWN = {
    ["host"] = true, ["connection"] = true, ["content-length"] = true, ["transfer-encoding"] = true,
    ["expect"] = true, ["upgrade"] = true, ["keep-alive"] = true, ["te"] = true, ["accept-encoding"] = true,
}
-- Headers of the response that are not passed on to the client.
local HOP = { ["connection"] = true, ["content-length"] = true, ["transfer-encoding"] = true, ["keep-alive"] = true }
-- Headers of a 200 that the service gets.
local FOR_SERVICE = { "x-metering-org-id", "x-bds-request-id" }
-- Headers of a 200 that the client gets, by the variable that keeps them for the response.
local FOR_CLIENT = {
    ["txn.metering_balance"] = "x-bds-credit-balance",
    ["txn.metering_charged"] = "x-bds-credit-charged",
    ["txn.metering_payment"] = "payment-response",
    ["txn.metering_receipt"] = "metering-receipt",
    ["txn.metering_allow_origin"] = "access-control-allow-origin",
    ["txn.metering_expose_headers"] = "access-control-expose-headers",
}

-- The values of a header, as a list that starts at 1.
local function values(of)
    local list = {}
    for index = 0, #of do
        if of[index] ~= nil then list[#list + 1] = of[index] end
    end
    return list
end

-- Whether metering meant a status for the client.
local function is_for_client(status)
    return status ~= nil and (status == 204 or (status >= 400 and status < 500))
end

local function authorize(txn)
    local headers = {}
    for name, of in pairs(txn.http:req_get_headers()) do
        if not OWN[name] then headers[name] = values(of) end
    end
    local answer = core.httpclient():get{ url = URL, headers = headers, timeout = 15000 }
    if answer == nil or answer.status ~= 200 then
        local reply = txn:reply()
        if answer == nil or not is_for_client(answer.status) then
            reply:set_status(503)
            txn:done(reply)
            return
        end
        reply:set_status(answer.status)
        for name, of in pairs(answer.headers) do
            if not HOP[name] then
                for _, value in ipairs(values(of)) do reply:add_header(name, value) end
            end
        end
        if answer.body ~= nil then reply:set_body(answer.body) end
        txn:done(reply)
        return
    end
    for _, name in ipairs(FOR_SERVICE) do
        local of = answer.headers[name]
        if of ~= nil then txn.http:req_set_header(name, values(of)[1]) end
    end
    for variable, name in pairs(FOR_CLIENT) do
        local of = answer.headers[name]
        if of ~= nil then txn:set_var(variable, values(of)[1]) end
    end
end

core.register_action("authorize", { "http-req" }, authorize, 0)
