-- Asks Tidegate about each request: `http-request lua.tidegate DOMAIN` in haproxy.cfg.
--
-- Needs HAProxy 2.5 or newer, built with Lua. Sets the variable txn.tidegate to `allowed`, `refused`,
-- `unreadable` (the request cannot be asked about) or `unavailable`, and for the answer to the client txn.tidegate_limit, txn.tidegate_remaining,
-- txn.tidegate_retry_after and txn.tidegate_body.

-- Where Tidegate listens, from `setenv` in haproxy.cfg.
local address = os.getenv("TIDEGATE_ADDRESS") or "127.0.0.1:8080"

-- How long a request waits for Tidegate.
local timeout_ms = 250

-- Lines of headers that are handed on. HAProxy 2.6 crashes if its client is to send more than tune.http.maxhdr,
-- 101 by default; five are added here and by HAProxy.
local most_lines = 90

-- Headers of the client that describe nothing, or only its connection to HAProxy.
local dropped = {
    ["connection"] = true, ["content-length"] = true, ["expect"] = true, ["host"] = true, ["keep-alive"] = true,
    ["te"] = true, ["trailer"] = true, ["transfer-encoding"] = true, ["upgrade"] = true,
}

-- The header lists of HAProxy count from 0.
local function lines(values)
    local list = {}
    for index = 0, #values do
        list[#list + 1] = values[index]
    end
    return list
end

-- The headers of the question, or nil if there are too many.
local function question(txn)
    local headers, count = {}, 0
    for name, values in pairs(txn.http:req_get_headers()) do
        if not dropped[name] then
            headers[name] = lines(values)
            count = count + #headers[name]
        end
    end
    if count > most_lines then
        return nil
    end
    -- Set, never appended: HAProxy stands at the edge, and what the client sent is not believed.
    headers["x-forwarded-for"] = { txn.sf:src() }
    headers["x-forwarded-host"] = { txn.sf:req_hdr("host") }
    headers["x-forwarded-method"] = { txn.sf:method() }
    headers["x-forwarded-uri"] = { txn.sf:pathq() }
    headers["host"] = { "tidegate" }
    return headers
end

local function tell(txn, variable, values)
    if values and values[0] then
        txn:set_var("txn.tidegate_" .. variable, values[0])
    end
end

core.register_action("tidegate", { "http-req" }, function(txn, domain)
    local headers = question(txn)
    local answer = headers and core.httpclient():get{
        url = "http://" .. address .. "/v1/authorize?domain=" .. domain,
        headers = headers,
        timeout = timeout_ms,
    }
    local status = answer and answer.status or 0
    if status ~= 200 and status ~= 429 then
        -- What Tidegate cannot read must not pass: its client would choose to be unlimited.
        local is_clients_fault = not headers or (status >= 400 and status < 500)
        txn:set_var("txn.tidegate", is_clients_fault and "unreadable" or "unavailable")
        return
    end
    txn:set_var("txn.tidegate", status == 200 and "allowed" or "refused")
    tell(txn, "limit", answer.headers["x-ratelimit-limit"])
    tell(txn, "remaining", answer.headers["x-ratelimit-remaining"])
    tell(txn, "retry_after", answer.headers["retry-after"])
    txn:set_var("txn.tidegate_body", answer.body or "")
end, 1)
