-- What was drawn in another window than the one now is forgotten, or nobody can tell.
local function give_back(c, a, made)
  local index, used = settle(c, a)
  if index ~= floor(made / a[5]) then return end
  refund(c, a)
  return math.min(a[1], used)
end
