import t from 'tap'
import { ClientTable } from '../../../engine/scan/client-table.ts'
import { hashClient } from '../../../engine/scan/distinct-clients.ts'
import { NameTable, NO_NAME, PairTable } from '../../../engine/scan/event-tables.ts'
import { type CountingView, collidingTexts, countingView } from '../../support/colliding-texts.ts'

/** 4,096 keys. With one hash for all, a table compares each with all before it: 8 million times. */
const PAIRS = 12
const KEYS = 2 ** PAIRS
const CLIENT = '192.0.2.1'

/** The text of one key after the other, all of the same length. */
function viewOf(texts: readonly string[]): { readonly view: CountingView; readonly bytes: number } {
  const all = Buffer.from(texts.join(''))
  return { view: countingView(all), bytes: all.byteLength / texts.length }
}

t.test('names with the same FNV-1a hash are found without comparing them with each other', async (t) => {
  const table = new NameTable()
  const { view, bytes } = viewOf(collidingTexts(PAIRS).map((text) => `${text}.chatgpt.com`))
  for (const turn of ['first', 'second']) {
    view.reads = 0
    for (let key = 0; key < KEYS; key++) {
      const found = table.find(view, key * bytes, (key + 1) * bytes)
      const number = found === NO_NAME ? table.add(view, key * bytes, (key + 1) * bytes) : found
      if (number !== key) t.fail(`${turn} time: name ${key} has the number ${number}`)
    }
    t.ok(view.reads < 3 * view.byteLength, `${turn} time: ${view.reads} reads of ${view.byteLength} bytes`)
  }
})

t.test('users with the same FNV-1a hash are found without comparing them with each other', async (t) => {
  const table = new ClientTable()
  const client = Buffer.from(CLIENT)
  const clientHash = hashClient(new DataView(client.buffer, client.byteOffset, client.byteLength), 0, client.byteLength)
  // The state in which the user was hashed, for cell 0.
  const state = clientHash ^ 0x9e3779b1
  const { view, bytes } = viewOf(collidingTexts(PAIRS, state).map((user) => CLIENT + user))
  for (const turn of ['first', 'second']) {
    view.reads = 0
    for (let key = 0; key < KEYS; key++) {
      const start = key * bytes
      const userStart = start + CLIENT.length
      if (table.full) t.fail(`full with ${key} users`)
      const row = table.rowOf(0, view, start, userStart, userStart, start + bytes)
      if (row !== key) t.fail(`${turn} time: user ${key} has row ${row}`)
    }
    t.ok(view.reads < 3 * view.byteLength, `${turn} time: ${view.reads} reads of ${view.byteLength} bytes`)
  }
})

t.test('where client and user meet is part of the key', async (t) => {
  const table = new ClientTable()
  const { view } = viewOf(['10.0.0.12'])
  const rows = [7, 8, 9].map((end) => table.rowOf(0, view, 0, end, end, 9))
  t.same(rows, [0, 1, 2])
  t.same(
    [0, 1, 2].map((row) => table.find(0, view, 0, 7 + row, 7 + row, 9)),
    rows,
  )
})

t.test('pairs of numbers are numbered in order of arrival', async (t) => {
  const table = new PairTable(1024)
  for (let round = 0; round < 2; round++) {
    for (let number = 0; number < 1024; number++) {
      t.notOk(table.full)
      // Multiples of 2^16 were in one bucket of a Map.
      const [first, second] = [number >> 5, (number & 31) << 16]
      if (table.find(first, second) !== -1) t.fail(`pair ${number} was found before it was added`)
      if (table.add(first, second) !== number || table.find(first, second) !== number) t.fail(`pair ${number}`)
      if (table.first(number) !== first || table.second(number) !== second) t.fail(`columns of pair ${number}`)
    }
    t.ok(table.full)
    table.clear()
    t.equal(table.find(0, 0), -1)
  }
})
