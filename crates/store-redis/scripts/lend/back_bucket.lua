-- Had the loan not been made, the bucket would have been full earlier by what is given back, and have lost
-- what drips in from then on. So no more is given back than would still be missing, had nobody else been
-- charged: a charge only makes it later. And nothing after the loan's end, which bounds what two
-- loans given back at different times may hide from each other.
local function give_back(c, a, made, ends, whole)
  local missing = whole - now
  if now >= ends or missing <= 0 then return end
  if a[1] >= missing then a[1], a[2] = missing, 0 end
  refund(c, a)
end
