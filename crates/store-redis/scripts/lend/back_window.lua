-- What was drawn in another window than the one now is forgotten, or nobody can tell.
local function give_back(c, a, made)
  local index = settle(c, a)
  if index == floor(made / a[5]) then refund(c, a) end
end
