sweep()
local reply = {}
for _ = 1, narg() do
  reply[#reply + 1] = settle({ key = arg(), attempt = arg(), outcome = arg(), channel = arg(), halt = arg(), probeable = narg(),
    shut = narg(), counted = narg(), pb = narg(), used = narg(), latency = narg(), backoff = narg(), clear = arg() == '1', rid = arg() })
end
for _ = 1, narg() do
  reply[#reply + 1] = acquire({ key = arg(), attempt = arg(), path = arg(), group = arg(), gen = narg(), units = narg(),
    bounded = arg() == '1', exclude = arg(), pinned = arg(), r1 = narg(), r2 = narg() })
end
flush()
return reply
