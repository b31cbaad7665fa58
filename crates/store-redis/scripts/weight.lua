-- `count` times `overlap` over `span`, rounded; exact for any count below 2^53 and span below 2^49.
local function weighed(count, overlap, span, up)
  if count == 0 or overlap >= span then return count end
  local whole, rest
  local product = count * overlap
  if product < 9007199254740992 then
    whole = floor(product / span)
    rest = product - whole * span
  else
    -- By long division, three bits at a time.
    whole, rest = 0, 0
    for digit = 17, 0, -1 do
      rest = rest * 8 + floor(count / 8 ^ digit) % 8 * overlap
      local part = floor(rest / span)
      whole, rest = whole * 8 + part, rest - part * span
    end
  end
  if up == 1 and rest > 0 then return whole + 1 end
  return whole
end
