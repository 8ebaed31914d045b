import { gzipSync } from 'node:zlib'
import { CaptureFile } from '../../collector/capture/capture-file.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { generatedCaptures } from '../captures/cases.ts'
import { captureBytes } from '../captures/generated-capture.ts'
import { bytesInPieces } from '../collector/capture/read-capture.ts'
import { Random } from './random.ts'

/**
 * Reads mutated capture files. For any bytes, only a Fault is thrown, reading ends, every record is
 * within the buffer, and there are no more records than the bytes can hold.
 */
const BUFFER_BYTES = 600_000
const RECORD_BYTES_MIN = 12
const ODD_NUMBERS = [0, 1, 11, 12, 16, 28, 0x7fff_ffff, 0xffff_fff0, 0xffff_ffff, 262_144, 262_145, 524_288]

export async function fuzzFiles(seed: number, mutations: number): Promise<void> {
  const random = new Random(seed)
  const files = Object.values(generatedCaptures())
    .map(captureBytes)
    .filter(({ length }) => length < 20_000)
  for (let done = 0; done < mutations; done++) {
    const bytes = mutated(random, random.of(files))
    const file = random.below(8) === 0 ? cut(random, gzipSync(bytes)) : bytes
    try {
      await readAll(random, file, bytes.length)
    } catch (error) {
      if (error instanceof Fault) continue
      throw new Error(`seed ${seed}, file ${done}: ${(error as Error).stack}\n${file.toString('hex')}`)
    }
  }
}

async function readAll(random: Random, bytes: Buffer, unpackedBytes: number): Promise<void> {
  const file = await CaptureFile.of(bytesInPieces(bytes, [random.below(bytes.length + 1)]))
  const { reader } = file
  const buffer = Buffer.alloc(BUFFER_BYTES)
  const view = new DataView(buffer.buffer, buffer.byteOffset, buffer.length)
  let records = 0
  for (let end = 0; ; ) {
    end = await file.fill(buffer, end, buffer.length)
    while (reader.next(view, end)) {
      if (reader.offset < 0 || reader.offset + reader.captured > end) throw new Error('a record outside the buffer')
      records++
    }
    if (file.ended || reader.damage !== undefined) {
      file.finish(end)
      if (records > unpackedBytes / RECORD_BYTES_MIN) throw new Error(`${records} records in ${unpackedBytes} bytes`)
      return
    }
    if (reader.at === 0 && end === buffer.length) throw new Error('a record that fits no buffer is waited for')
    buffer.copyWithin(0, reader.at, end)
    end -= reader.at
    file.moved(0)
  }
}

function mutated(random: Random, original: Buffer): Buffer {
  const bytes = Buffer.from(original)
  for (let changes = random.below(5); changes >= 0 && bytes.length > 0; changes--) {
    const at = random.below(random.below(2) === 0 ? Math.min(bytes.length, 200) : bytes.length)
    switch (random.below(4)) {
      case 0:
        bytes[at] = random.below(256)
        break
      case 1:
        if (at + 4 <= bytes.length) bytes.writeUInt32LE(random.of(ODD_NUMBERS), at & ~3)
        break
      case 2:
        if (at + 4 <= bytes.length) bytes.writeUInt32BE(random.of(ODD_NUMBERS), at & ~3)
        break
      default:
        bytes[at] = (bytes[at] ?? 0) ^ (1 << random.below(8))
    }
  }
  return random.below(3) === 0 ? cut(random, bytes) : bytes
}

function cut(random: Random, bytes: Buffer): Buffer {
  return bytes.subarray(0, random.below(bytes.length + 1))
}
