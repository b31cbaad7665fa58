-- Decides on several limits and charges them together.
--
-- KEYS: the counters, each once. ARGV: `0` if every limit is charged alone, `1` if all or none, `2` if that
-- hangs on other slots as well; then for each limit a byte for its algorithm, one for its counter (from 1),
-- one for its mode (0 enforce, 1 quota, 2 shadow), and the numbers `a` of its algorithm, as doubles.
-- Reply: the time; a `1` or `0` for each limit; then for each counter the state as it was found.
local counters, words = {}, {}
local is_refused, quotas, admitting = false, 0, 0
for i = 2, #ARGV - spare do
  local kind, of, mode = unpack_struct('<BBB', ARGV[i])
  local algorithm = algorithms[kind]
  local a = {unpack_struct(algorithm.numbers, ARGV[i], 4)}
  local c = counters[of]
  if not c then
    c = {key = KEYS[of], algorithm = algorithm, a = a}
    counters[of] = c
    algorithm.open(c, a)
  end
  local fits = algorithm.weigh(c, a)
  -- What is kept must do for the largest of the limits that name it.
  if a[3] > c.a[3] then c.a = a end
  words[i - 1] = fits and '1' or '0'
  if mode == 0 then
    is_refused = is_refused or not fits
  elseif mode == 1 then
    quotas = quotas + 1
    if fits then admitting = admitting + 1 end
  end
end
is_refused = is_refused or quotas > 0 and admitting == 0
local is_charged = ARGV[1] == '0' or not is_refused
-- What is charged here may still be given back, and then what was is told.
local is_final = is_charged and ARGV[1] ~= '2'
local reply = {time[1] .. '.' .. time[2], table.concat(words)}
for i, c in ipairs(counters) do
  local algorithm = c.algorithm
  reply[i + 2] = c.found and (algorithm.tell and algorithm.tell(c, c.a, is_final) or c.found) or ''
  algorithm.write(c, c.a, is_charged)
end
return reply
