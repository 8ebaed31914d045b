import t from 'tap'
import { BodyCache } from '../../api/body-cache.ts'
import type { ListState } from '../../api/list-state.ts'

function state(): ListState {
  return {
    etag: '"0"',
    gzipEtag: '"0-gzip"',
    count: 0,
    headText: undefined,
    firstBodyKey: Buffer.alloc(0),
    isChecked: true,
    body: undefined,
  }
}

const MEGABYTE = 1024 * 1024
const ROOM = 32

t.test('a copy is kept, whatever becomes of the bytes', async (t) => {
  const cache = new BodyCache()
  const one = state()
  const bytes = Uint8Array.of(1, 2, 3)
  const kept = cache.keep(one, bytes)
  bytes.fill(9)
  t.same([...kept], [1, 2, 3])
  t.equal(one.body, kept)
  cache.drop(one)
  t.equal(one.body, undefined)
  cache.drop(one)
})

t.test(
  'it is bounded: when it is full most of what is there stays, and now and then the oldest makes room',
  async (t) => {
    const cache = new BodyCache()
    const states = Array.from({ length: 200 }, state)
    for (const one of states) cache.keep(one, new Uint8Array(MEGABYTE))
    const kept = states.filter(({ body }) => body !== undefined)
    t.equal(kept.length, ROOM)
    // 168 found no room; of each 64 one took the place of the oldest.
    t.same([...new Set(states.slice(0, ROOM).map(({ body }) => body !== undefined))], [false, true])
    t.equal(states.slice(0, ROOM).filter(({ body }) => body === undefined).length, 2)
  },
)

t.test('a body that is too long is not kept, and what is dropped makes room', async (t) => {
  const cache = new BodyCache()
  const long = state()
  const body = new Uint8Array(MEGABYTE + 1)
  t.equal(cache.keep(long, body), body)
  t.equal(long.body, undefined)
  const states = Array.from({ length: ROOM }, state)
  for (const one of states) cache.keep(one, new Uint8Array(MEGABYTE))
  for (const one of states) cache.drop(one)
  for (const one of states) cache.keep(one, new Uint8Array(MEGABYTE))
  t.ok(states.every((one) => one.body !== undefined))
})
