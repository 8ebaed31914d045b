import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { CaptureFile, latestTimeMs } from '../../../collector/capture/capture-file.ts'
import { SNAPLEN_BYTES_MAX } from '../../../collector/limits.ts'
import { framesAt, type PcapFields, pcapFile } from '../../support/packets-pcap.ts'
import { fill } from '../../support/packets-tls.ts'
import { readCapture } from './read-capture.ts'

const START_MS = Date.UTC(2026, 2, 3, 9)

const bytes = fill(7)
const frames = framesAt(START_MS + 0.25, [60, 0, 1, 200, 90].map(bytes))
const expected = frames.map(({ bytes, timeMs }) => ({ bytes: bytes.toString('hex'), timeMs, linkType: 1 }))

for (const fields of [
  {},
  { bigEndian: true },
  { nanoseconds: true },
  { bigEndian: true, nanoseconds: true },
] as PcapFields[]) {
  t.test(`reads ${JSON.stringify(fields)}`, async (t) => {
    t.same(await readCapture(pcapFile(frames, fields)), { records: expected, damage: undefined })
  })
}

t.test('the records do not depend on where reads are split', async (t) => {
  const whole = pcapFile(frames)
  for (let at = 0; at <= whole.length; at++)
    t.same((await readCapture(whole, { pieces: [at] })).records, expected, `split at byte ${at}`)
})

t.test('a record that straddles the end of the buffer is read', async (t) => {
  // The buffer holds one record of the maximum length, so it cannot hold these two and the header
  // at once.
  const large = framesAt(START_MS, [SNAPLEN_BYTES_MAX, 1000, SNAPLEN_BYTES_MAX - 1, 3].map(bytes))
  const { records, damage } = await readCapture(pcapFile(large), { bufferBytes: SNAPLEN_BYTES_MAX + 16 })
  t.equal(damage, undefined)
  t.same(
    records.map(({ bytes }) => bytes.length / 2),
    large.map(({ bytes }) => bytes.length),
  )
  t.ok(records.every(({ bytes }, index) => bytes === large[index]?.bytes.toString('hex')))
})

t.test('a file truncated at any byte is read up to that byte, and the rest is reported', async (t) => {
  const whole = pcapFile(frames)
  const ends = [24]
  for (const { bytes } of frames) ends.push((ends.at(-1) ?? 0) + 16 + bytes.length)
  for (let length = 0; length <= whole.length; length++) {
    const cut = whole.subarray(0, length)
    if (length < 24) {
      await t.rejects(
        readCapture(cut),
        { code: length < 4 ? 'CAPTURE_FORMAT' : 'CAPTURE_DAMAGED' },
        `truncated at byte ${length}`,
      )
      continue
    }
    const { records, damage } = await readCapture(cut)
    const wholeRecords = ends.filter((end) => end <= length).length - 1
    t.same(records, expected.slice(0, wholeRecords), `truncated at byte ${length}`)
    const at = ends[wholeRecords] ?? 0
    if (at === length) t.equal(damage, undefined)
    else t.match(damage ?? '', new RegExp(`^byte ${at}: found \\d+ bytes`))
  }
})

t.test('a damage report names the offset, the found and the expected value', async (t) => {
  const whole = pcapFile(frames)
  t.equal(
    (await readCapture(whole.subarray(0, 24 + 76 + 11))).damage,
    'byte 100: found 11 bytes, expected a record header of 16',
  )
  t.equal(
    (await readCapture(whole.subarray(0, 24 + 16 + 59))).damage,
    'byte 24: found 59 bytes after the record header, expected a packet of 60',
  )
  const corrupt = Buffer.from(whole)
  corrupt.writeUInt32LE(0xdead_beef, 24 + 8)
  t.equal(
    (await readCapture(corrupt)).damage,
    'byte 24: found a captured length of 3735928559, expected at most 262144',
  )
})

t.test("the header's snaplen is ignored, and FCS bits are not read as a link type", async (t) => {
  const whole = pcapFile(frames, { snaplen: 10 })
  whole.writeUInt32LE(0x1400_0001, 20)
  t.same((await readCapture(whole)).records, expected)
})

const notPcap: readonly { name: string; bytes: Buffer; expected: RegExp }[] = [
  { name: 'an empty file', bytes: Buffer.alloc(0), expected: /the file is empty/ },
  { name: 'gzip of something else', bytes: gzipSync('text'), expected: /not a pcap or pcapng capture file/ },
  { name: 'xz', bytes: Buffer.from('fd377a585a0000', 'hex'), expected: /xz.*unpack/ },
  { name: 'snoop', bytes: Buffer.from('736e6f6f70000000', 'hex'), expected: /snoop.*editcap/ },
  {
    name: 'a text file',
    bytes: Buffer.from('time,client,name\n'),
    expected: /not a pcap or pcapng capture file/,
  },
  {
    name: 'another version of the format',
    bytes: Buffer.concat([pcapFile([]).subarray(0, 4), Buffer.from([9, 0, 0, 0]), Buffer.alloc(16)]),
    expected: /version 9/,
  },
]
for (const { name, bytes, expected } of notPcap) {
  t.test(`${name} is not a capture file`, async (t) => {
    await t.rejects(readCapture(bytes), { code: 'CAPTURE_FORMAT', message: expected })
  })
}

t.test('a file that cannot be opened is an error', async (t) => {
  const folder = t.testdir({ 'secret.pcap': pcapFile(frames), 'text.txt': 'hello' })
  mkdirSync(`${folder}/folder`)
  await t.rejects(CaptureFile.open(`${folder}/none.pcap`), {
    code: 'CAPTURE_UNREADABLE',
    message: `${folder}/none.pcap: no such file`,
  })
  await t.rejects(CaptureFile.open(`${folder}/folder`), { code: 'CAPTURE_UNREADABLE', message: /is a directory/ })
  await t.rejects(CaptureFile.open(`${folder}/text.txt/a`), { code: 'CAPTURE_UNREADABLE', message: /not a directory/ })
  await t.rejects(CaptureFile.open(`${folder}/text.txt`), {
    code: 'CAPTURE_FORMAT',
    message: /text\.txt: not a pcap or pcapng/,
  })
  writeFileSync(`${folder}/good.pcap`, pcapFile(frames))
  const file = await CaptureFile.open(`${folder}/good.pcap`)
  t.equal(file.source.bytesTotal, pcapFile(frames).length)
  file.close()
  t.equal(await latestTimeMs(`${folder}/good.pcap`), START_MS + 4.25)
  if (process.getuid?.() === 0) return
  chmodSync(`${folder}/secret.pcap`, 0)
  await t.rejects(CaptureFile.open(`${folder}/secret.pcap`), { code: 'CAPTURE_UNREADABLE', message: /no permission/ })
})
