import { isIP } from 'node:net'
import t from 'tap'
import { isIpText } from '../../../engine/formats/ip-address.ts'
import * as fc from '../../support/property.ts'

/** The text has other bytes around it, so that a read past either end is detected. */
function isAddress(text: string): boolean {
  const bytes = Buffer.from(`1:${text}:1`)
  return isIpText(new DataView(bytes.buffer, bytes.byteOffset, bytes.length), 2, bytes.length - 2)
}

const ROWS = [
  ...[
    '',
    '0',
    '0.0.0.0',
    '255.255.255.255',
    '256.0.0.0',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '1.2.3.4 ',
    '1..2.3',
    '1.2.3.',
  ],
  ...['1.2.3.4%a', '::', '::1', '1::', ':::', ':1', '1:', '1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8:', '1:2:3:4:5:6:7:8:9'],
  ...['1:2:3:4:5:6:7::', '::1:2:3:4:5:6:7', '1:2:3:4:5:6:7::8', '1:2:3:4::5:6:7:8', '1::2::3', '12345::', 'g::', '::g'],
  ...['::1.2.3.4', '1:2:3:4:5:6:1.2.3.4', '1:2:3:4:5:6:7:1.2.3.4', '::1:2:3:4:5:1.2.3.4', '::1:2:3:4:5:6:1.2.3.4'],
  ...[
    '1.2.3.4::',
    '::1.2.3.4:1',
    '::1.2.3.04',
    '::1.2.3',
    '::ffff:1.2.3.256',
    '1:2:3:4:5:6:7:1.2.3.4',
    '::12345.2.3.4',
  ],
  ...[
    'fe80::1%eth0',
    'fe80::1%',
    '::%a-b.c:d',
    '::%a_b',
    '::1%a%b',
    '::1.2.3.4%1',
    '1:2:3:4:5:6:7:8%z',
    '%a',
    '::1%ü',
    'ü',
  ],
]

t.test('the check agrees with node:net on every row', async (t) => {
  for (const text of ROWS) t.equal(isAddress(text), isIP(text) !== 0, JSON.stringify(text))
})

t.test('the check agrees with node:net on addresses, near misses, and any text of their characters', async () => {
  const pieces = fc.constantFrom(
    '0',
    '1',
    '9',
    '25',
    '255',
    '256',
    'a',
    'F',
    'ffff',
    'g',
    ':',
    ':',
    '::',
    '.',
    '%',
    '-',
    ' ',
  )
  const nearly = fc
    .tuple(fc.oneof(fc.ipV4(), fc.ipV6()), fc.nat(45), fc.nat(3), pieces)
    .map(([text, at, removed, inserted]) => text.slice(0, at) + inserted + text.slice(at + removed))
  const anything = fc.array(pieces, { maxLength: 20 }).map((all) => all.join(''))
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6(), nearly, anything), (text) => isAddress(text) === (isIP(text) !== 0)),
    { numRuns: 50_000 },
  )
})
