import t from 'tap'
import { NO_SLOT, SlotList, SlotTable } from '../../../collector/decode/slot-table.ts'
import * as fc from '../../support/property.ts'

const SLOTS = 8

/** Addresses of a few hosts: IPv4 at offset 0, IPv6 at 64. Each source precedes its destination. */
const packet = new DataView(new ArrayBuffer(128))
for (let at = 0; at < 128; at++) packet.setUint8(at, at * 7)

interface Key {
  readonly addresses: number
  readonly addressBytes: number
  readonly ports: number
  readonly protocol: number
}

const key = fc.record({
  addresses: fc.constantFrom(0, 1, 2, 64, 65),
  ports: fc.nat(3),
  protocol: fc.constantFrom(6, 17),
})

const step = fc.record({ kind: fc.constantFrom('add', 'remove', 'touch', 'keep', 'find'), key, seconds: fc.nat(100) })

const textOf = ({ addresses, addressBytes, ports, protocol }: Key) =>
  [addresses, addressBytes, ports, protocol].join(' ')

t.test('a slot table finds, adds and removes like a Map, and knows the least recently used entry', async () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const table = new SlotTable(SLOTS)
      const model = new Map<string, number>()
      /** The entries of each list, oldest first. */
      const lists: [number[], number[]] = [[], []]
      const leave = (slot: number) => {
        for (const list of lists) if (list.includes(slot)) list.splice(list.indexOf(slot), 1)
      }
      for (const { kind, key, seconds } of steps) {
        const wanted = { ...key, addressBytes: key.addresses < 64 ? 4 : 16 }
        const name = textOf(wanted)
        table.prepare(packet, wanted.addresses, wanted.addressBytes, wanted.ports, wanted.protocol)
        const slot = table.find()
        if (slot !== (model.get(name) ?? NO_SLOT)) return false
        if (kind === 'add' && slot === NO_SLOT && !table.full) {
          const added = table.add(seconds)
          if ([...model.values()].includes(added)) return false
          model.set(name, added)
          lists[0].push(added)
        }
        if (kind === 'remove' && slot !== NO_SLOT) {
          table.remove(slot)
          model.delete(name)
          leave(slot)
        }
        if ((kind === 'touch' || kind === 'keep') && slot !== NO_SLOT) {
          const list = kind === 'keep' ? SlotList.keeping : SlotList.idle
          table.touch(slot, list, seconds)
          leave(slot)
          lists[list].push(slot)
          if (table.seconds(slot) !== seconds || table.list(slot) !== list) return false
        }
        if (table.size !== model.size || table.full !== (model.size === SLOTS)) return false
        if (table.oldest(SlotList.idle) !== (lists[0][0] ?? NO_SLOT)) return false
        if (table.oldest(SlotList.keeping) !== (lists[1][0] ?? NO_SLOT)) return false
        if (table.first !== (lists[0][0] ?? lists[1][0] ?? NO_SLOT)) return false
      }
      return true
    }),
    { numRuns: 1000 },
  )
})

t.test('a key is read back with the bytes of the wire', async (t) => {
  const table = new SlotTable(SLOTS)
  table.prepare(packet, 64, 16, 0x1234_5678, 17)
  const slot = table.add(5)
  for (let byte = 0; byte < 32; byte++) t.equal(table.keys.getUint8(slot * 48 + byte), packet.getUint8(64 + byte))
  t.equal(table.word(slot, 8), 0x1234_5678)
  t.same([table.protocol(slot), table.version(slot)], [17, 6])
  table.prepare(packet, 0, 4, 1, 6)
  const next = table.add(5)
  t.same([table.protocol(next), table.version(next)], [6, 4])
  t.equal(table.keys.getUint32(next * 48), packet.getUint32(0))
  t.equal(table.keys.getUint32(next * 48 + 16), packet.getUint32(4))
})

t.test('keys that collided under every seed of an earlier hash fill no bucket', async (t) => {
  // Each word of the earlier hash was mixed by an XOR, a product with an odd number and a shift, so
  // these bits of two neighboring words canceled each other: 256 keys had one hash.
  const PAIRS = 8
  const LITTLE_ENDIAN = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1
  const table = new SlotTable(1024)
  const key = new DataView(new ArrayBuffer(36))
  let longest = 0
  for (let flips = 0; flips < 2 ** PAIRS; flips++) {
    for (let word = 0; word < 9; word++) {
      const high = (flips >> word) & 1
      const canceled = word === 0 ? 0 : (flips >> (word - 1)) & 1
      key.setUint32(word * 4, ((high << 31) ^ (canceled === 0 ? 0 : 0x8001_0000)) >>> 0, LITTLE_ENDIAN)
    }
    table.prepare(key, 0, 16, key.getUint32(32, LITTLE_ENDIAN), 6)
    t.equal(table.find(), NO_SLOT)
    longest = Math.max(longest, table.passed)
    t.notOk(table.full)
    table.add(0)
  }
  t.ok(longest < 8, `a search passed ${longest} entries`)
})
