-- Inserts jobs of a queue. ARGV: prefix, queue, '1' if runs made some of them, messages. Returns whether the window is
-- short, and whether jobs of several classes wait together.
local queue, n = ARGV[2], 0
for at = 4, #ARGV do
  n = insert(queue, ARGV[at]) and n + 1 or n
end
if n > 0 then
  tell(queue, n)
end
local first, last = call('LINDEX', of(queue, 'ready'), 0), call('LINDEX', of(queue, 'ready'), -1)
return { is_short(queue) and 1 or 0, ARGV[3] == '1' and priority(first) ~= priority(last) and 1 or 0 }
