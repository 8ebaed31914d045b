import { allocateBatch, BatchState, FrameBatch } from '../../collector/capture/frame-batch.ts'
import { BatchDecoder } from '../../collector/decode/decode-batch.ts'
import { type ObservedName, readRow, rowBytes } from '../../collector/decode/name-rows.ts'
import { PACKET_CLASS_NAMES, type PacketClassName } from '../../collector/decode/packet-class.ts'
import { BATCH_ROW_BYTES } from '../../collector/limits.ts'
import { compileTrie } from '../../registry/compile-trie.ts'

/** Two rules suffice here; the trie has its own tests. */
export const TRIE = compileTrie([
  { domain: 'chatgpt.com', match: 'suffix' },
  { domain: 'claude.ai', match: 'suffix' },
])

/** A decoder without threads: frames go in, names and the counts of the classes come out. */
export class FrameDecoder {
  readonly #batch = new FrameBatch(allocateBatch(1024 * 1024, BATCH_ROW_BYTES), 0)
  readonly #decoder = new BatchDecoder(TRIE, true)

  decode(frames: readonly Buffer[], linkType = 1): { names: ObservedName[]; classes: PacketClassName[] } {
    const classes: PacketClassName[] = []
    const names: ObservedName[] = []
    for (const frame of frames) {
      const batch = this.#batch
      batch.tryTake()
      batch.beginFilling(0, linkType)
      batch.put(frame, 0, frame.length, frame.length, 1_000, 5_000_000, 0, 0)
      batch.pass(BatchState.filling, BatchState.ready)
      if (!this.#decoder.decode(batch)) throw new Error('one frame fills the rows area')
      const counted = PACKET_CLASS_NAMES.filter((_name, index) => batch.classes[index] === 1)
      if (counted.length !== 1) throw new Error(`a frame ended in ${counted.length} classes`)
      classes.push(...counted)
      const { rowBytes: end } = batch.run
      for (let at = batch.rowsStart; at < batch.rowsStart + end; at += rowBytes(batch.view, at))
        names.push(readRow(batch.view, batch.bytes, at))
      batch.pass(BatchState.decoding, BatchState.free)
    }
    return { names, classes }
  }

  /** Names and class of one frame. */
  one(frame: Buffer, linkType = 1): { names: string[]; packetClass: PacketClassName | undefined } {
    const { names, classes } = this.decode([frame], linkType)
    return { names: names.map(({ name }) => name), packetClass: classes[0] }
  }
}
