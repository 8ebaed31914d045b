import t from 'tap'
import { COLON, EQUALS } from '../../../engine/formats/bytes.ts'
import { PairScanner } from '../../../engine/formats/pair-fields.ts'
import { checkGrowth } from '../../support/log-mutations.ts'

/** The pairs of a message with other bytes around it. */
function pairs(message: string, assign = EQUALS): string[] {
  const bytes = Buffer.from(`=x${message}="`)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const scanner = new PairScanner(assign)
  scanner.reset(view, 2, bytes.length - 2)
  const found: string[] = []
  while (scanner.next()) {
    found.push(
      `${bytes.toString('utf8', scanner.keyStart, scanner.keyEnd)}|${bytes.toString('utf8', scanner.valueStart, scanner.valueEnd)}`,
    )
  }
  if (scanner.unclosed) found.push('unclosed')
  return found
}

const rows: readonly (readonly [name: string, message: string, found: readonly string[]])[] = [
  ['blanks, several of them', '  a=1   b.c-d_e=2 ', ['a|1', 'b.c-d_e|2']],
  ['quotes, and no blank behind them', 'a="x y"b="z"', ['a|x y', 'b|z']],
  ['escapes', 'a="x\\"y=1\\\\" b=2', ['a|x\\"y=1\\\\', 'b|2']],
  ['apostrophes', "a='x y=1' b=it's c='no d=4", ['a|x y=1', "b|it's", 'c|no d=4', 'unclosed']],
  ['an apostrophe inside', "a='it's x' b=2", ["a|it's x", 'b|2']],
  ['empty values', 'a= b="" c=', ['a|', 'b|', 'c|']],
  ['words that belong to the value before', 'a=IPv4 (0x0800) x b=2', ['a|IPv4 (0x0800) x', 'b|2']],
  ['a URL with pairs in its query', 'a=https://h/?x=1&y=2 b=3', ['a|https://h/?x=1&y=2', 'b|3']],
  ['words without a pair, quoted text as a whole', 'one "x a=1" two:3 b=2', ['b|2']],
  ['commas', 'a=1,b="2,3", c=4', ['a|1', 'b|2,3', 'c|4']],
  ['commas within values between commas', 'a=1,2,b=3', ['a|1,2', 'b|3']],
  ['a comma is no separator between blanks', 'a=1,2 b=3,4', ['a|1,2', 'b|3,4']],
  ['TABs, values with blanks and pairs in them', 'x\ta=1 y\tb=2 c d\te=3', ['a|1 y', 'b|2 c d', 'e|3']],
  ['a TAB decides', 'a=Fri Nov 20\tb=x y=1\tc=3', ['a|Fri Nov 20', 'b|x y=1', 'c|3']],
  ['bars', 'a=x y|b=|c=3', ['a|x y', 'b|', 'c|3']],
  ['two carets', 'p: a=Fri Nov^^b=2 x^^c=3', ['a|Fri Nov', 'b|2 x', 'c|3']],
  ['semicolons', 'a=1;b=2; c=3', ['a|1', 'b|2', 'c|3']],
  ['cells', '"a=1","b=""x, y""","c=2, 3"', ['a|1', 'b|x, y', 'c|2, 3']],
  ['a quote that nothing closes', 'a=1 b="2 c=3', ['a|1', 'b|2 c=3', 'unclosed']],
  ['a cell that nothing closes', '"a=1","b=2', ['a|1', 'b|2', 'unclosed']],
  ['keys begin with a letter', '1a=2 =3 -b=4 c=5', ['c|5']],
  ['nothing', '', []],
]

for (const [name, message, found] of rows) t.test(name, async (t) => t.same(pairs(message), found))

t.test('a colon before a quote separates key and value', async (t) => {
  t.same(pairs('[a:"1"; b:"x:y=\\"z\\""; c:3; d:"4"]', COLON), ['a|1', 'b|x:y=\\"z\\"', 'd|4'])
})

checkGrowth(t, {
  commas: (bytes) => `a=1,b=2${','.repeat(bytes)}`,
  quotes: (bytes) => `a=1 b=2 ${'"'.repeat(bytes)}`,
  apostrophes: (bytes) => "a='x ".repeat(bytes / 5),
  'open quotes': (bytes) => 'a="x\\" '.repeat(bytes / 7),
  backslashes: (bytes) => `a="${'\\'.repeat(bytes)}`,
  blanks: (bytes) => `a=1 b=2${' '.repeat(bytes)}c=3`,
  'words without a pair': (bytes) => `a=1 b=2 ${'x '.repeat(bytes / 2)}`,
  'one word': (bytes) => `a=1 b=2 ${'x'.repeat(bytes)}`,
  pairs: (bytes) => 'type=2 url=b '.repeat(bytes / 13),
  'a long URL': (bytes) => `date=1 type=utm subtype=webfilter url="https://${'a.'.repeat(bytes / 2)}/"`,
  brackets: (bytes) => `a=1 b=2 ${'['.repeat(bytes)}`,
})
