-- ask: what the gates would say to a call, without taking anything.
--
-- KEYS and ARGV 1 to the sources as in exchange, then path, group, pinned source, units
-- reply: per candidate source, in the order of the configuration:
--        {source, '' or the gate that refuses, ms until it may open, 1 if the source is shut (not merely busy), 1 if the call would be its probe}
-- A call that would never pass counts as one that may go: its task has to be delivered to hear of it.
-- Nothing is written: the state is changed in the cache only and dropped.
local r = { path = arg(), group = arg(), pinned = arg(), units = narg(), exclude = '', key = '', attempt = '', bounded = true, r1 = 0, r2 = 0 }
local reply = {}
local list = M.sources_of(r)
for i = 1, #list do
  local t = { r = r }
  local refusal = M.try(t, list[i])
  if t.unseeded then return { 4 } end
  if refusal and refusal.gate ~= 'missing' and not refusal.never then
    reply[i] = { list[i].name, refusal.gate, max(1, ceil(refusal.wait)), refusal.shut and 1 or 0, 0 }
  else
    reply[i] = { list[i].name, '', 0, 0, t.probe or 0 }
  end
end
return { 1, reply }
