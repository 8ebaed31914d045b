import t from 'tap'
import { openRecord, RECORD_HEADER_BYTES, sealRecord } from '../../../../engine/kernel/lmdb/record.ts'

t.test('a record returns its payload, including an empty one', async (t) => {
  for (const text of ['', 'x', 'a longer payload']) {
    t.equal(openRecord(sealRecord(1, Buffer.from(text)), 1, 'test').toString(), text)
  }
})

t.test('a flipped bit in any byte is detected', async (t) => {
  const record = sealRecord(1, Buffer.from('payload'))
  for (let at = 0; at < record.length; at++) {
    for (let bit = 0; bit < 8; bit++) {
      const damaged = Buffer.from(record)
      damaged[at] = (damaged[at] ?? 0) ^ (1 << bit)
      t.throws(() => openRecord(damaged, 255, 'test'), { code: 'STORE_DAMAGED' }, `byte ${at} bit ${bit}`)
    }
  }
})

t.test('a truncated record, one without a version and one of a newer release are rejected', async (t) => {
  const record = sealRecord(2, Buffer.from('payload'))
  for (let length = 0; length < RECORD_HEADER_BYTES; length++) {
    t.throws(() => openRecord(record.subarray(0, length), 2, 'test'), { code: 'STORE_DAMAGED' })
  }
  t.throws(() => openRecord(record, 1, 'event'), {
    code: 'STORE_VERSION',
    message: /event: found version 2, this release reads 1 to 1/,
  })
  t.throws(() => openRecord(sealRecord(0, Buffer.alloc(0)), 1, 'test'), { code: 'STORE_VERSION' })
})
