import t from 'tap'
import { KeyTable, NO_KEY } from '../../../engine/formats/bytes.ts'

const LONG = 'x'.repeat(40)
const TABLE = new KeyTable({ src: 0, srcip: 1, 'src-ip': 2, dst: 3, sni: 4, [LONG]: 5, host: 0 })

function find(text: string): number {
  // Other bytes precede and follow the text.
  const bytes = Buffer.from(`i${text}p`, 'latin1')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  return TABLE.find(view, 1, bytes.length - 1)
}

t.test('words are found regardless of case', async (t) => {
  const rows = { src: 0, SRC: 0, SrcIp: 1, 'src-ip': 2, 'SRC-IP': 2, dst: 3, sni: 4, [LONG]: 5, HOST: 0 }
  for (const [text, id] of Object.entries(rows)) t.equal(find(text), id, text)
})

t.test('other words are not found', async (t) => {
  const rows = [
    '',
    's',
    'sr',
    'srd',
    'src_ip',
    'srcipx',
    'SNJ',
    '3rc',
    'x'.repeat(8),
    'x'.repeat(72),
    '\u00f3rc',
    'src\0',
  ]
  for (const text of rows) t.equal(find(text), NO_KEY, text)
})
