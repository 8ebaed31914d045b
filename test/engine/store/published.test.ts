import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { bodyOf, ELEMENTS_PER_PART, gzipBodyKey, PublishedList, packList } from '../../../engine/store/published.ts'
import { acmeSite } from '../../support/acme-site.ts'
import * as fc from '../../support/property.ts'
import { makeOrganization, openStore } from '../../support/store.ts'

t.test('every page of every list equals JSON.stringify of its elements', async (t) => {
  const { store, id } = acmeSite(t, { unchecked: true })
  for (const count of [250, 0, 1, 99, 100, 101, 200, 201]) {
    const elements = Array.from({ length: count }, (_, index) => ({ index, text: 'ü'.repeat(index % 7) }))
    store.environment.write(() =>
      store.published.replace(
        id,
        PublishedList.discovery,
        `{"n":${count}}`,
        elements.map((each) => JSON.stringify(each)),
      ),
    )
    store.environment.read(() => {
      const head = store.published.head(id, PublishedList.discovery)
      t.equal(head?.count, count)
      t.equal(head?.text.toString(), `{"n":${count}}`)
      for (const limit of [1, 2, 50, 99, 100, Number.MAX_SAFE_INTEGER]) {
        for (const offset of [0, 1, 50, 99, 100, 101, 150, 199, 200, 249, 250, 300, Number.MAX_SAFE_INTEGER]) {
          const runs = store.published.elements(id, PublishedList.discovery, count, offset, limit)
          const page = elements.slice(offset, offset + limit)
          if (`[${Buffer.concat(runs).toString()}]` !== JSON.stringify(page))
            t.fail(`${count} elements, limit ${limit}, offset ${offset}`)
        }
      }
    })
  }
})

t.test('a shorter list leaves nothing of a longer one, also of one that is damaged', async (t) => {
  const opened = openStore(t, { unchecked: true })
  const { environment, published } = opened.store
  const { id } = makeOrganization(opened, 'Acme')
  const table = environment.table('published')
  const elements = Array.from({ length: 250 }, (_, index) => JSON.stringify({ index, text: 'a'.repeat(20) }))
  const publish = (count: number): string[] => {
    environment.write(() => published.replace(id, PublishedList.discovery, '{}', elements.slice(0, count)))
    return Array.from(table.getKeys({}), (key) => key.toString('hex'))
  }
  const short = publish(150)
  const long = publish(250)
  t.ok(long.length > short.length)
  for (const lost of long) {
    t.same(publish(250), long)
    environment.write(() => table.removeSync(Buffer.from(lost, 'hex')))
    t.same(publish(150), short, `without ${lost}`)
  }
})

t.test('the tag changes exactly when head or elements change', async (t) => {
  const { store, id } = acmeSite(t, { unchecked: true })
  const tagOf = (head: string, elements: string[]): string | undefined => {
    store.environment.write(() => store.published.replace(id, PublishedList.scores, head, elements))
    return store.environment.read(() => store.published.head(id, PublishedList.scores)?.tag)
  }
  const first = tagOf('', ['1', '2'])
  t.match(first, /^[0-9a-f]{32}$/)
  t.equal(tagOf('', ['1', '2']), first)
  for (const [head, elements] of [
    ['', ['1', '3']],
    ['', ['1']],
    ['', ['1,2']],
    ['x', ['1', '2']],
  ] as const) {
    t.not(tagOf(head, [...elements]), first)
  }
})

t.test('lists and organizations are independent', async (t) => {
  const opened = openStore(t, { unchecked: true })
  const { store } = opened
  const a = makeOrganization(opened, 'A').id
  const b = makeOrganization(opened, 'B').id
  store.environment.write(() => store.published.replace(a, PublishedList.scores, '', ['"of A"']))
  store.environment.read(() => {
    t.equal(store.published.head(b, PublishedList.scores), undefined)
    t.equal(store.published.head(a, PublishedList.discovery), undefined)
  })
})

t.test('a page of whole parts in gzip is the same page, after any change of the list', async (t) => {
  const { store, id } = acmeSite(t, { unchecked: true })
  const list = PublishedList.discovery
  const step = fc.record({ count: fc.nat(320), changed: fc.nat(320), head: fc.nat(3) })
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 6 }), (steps) => {
      let version = 0
      for (const { count, changed, head } of steps) {
        version++
        const elements = Array.from({ length: count }, (_, index) =>
          JSON.stringify({ index, text: 'ü'.repeat(index % 7), version: index === changed ? version : 0 }),
        )
        store.environment.write(() => store.published.replace(id, list, `{"head":${head}}`, elements))
        for (let page = 0; page <= 4; page++) {
          const shown = elements.slice(page * ELEMENTS_PER_PART, (page + 1) * ELEMENTS_PER_PART)
          const plain = bodyOf(list, Buffer.from(`{"head":${head}}`), [Buffer.from(shown.join(','))])
          const gzip = store.published.gzipBody(gzipBodyKey(id, list, page), true)
          if (shown.length === 0 || plain.length < 1024) {
            if (gzip !== undefined) return false
          } else if (gzip === undefined || !gunzipSync(gzip).equals(plain)) return false
        }
      }
      return true
    }),
  )
})

t.test('the compressed bytes of an unchanged part are used again', async (t) => {
  const elements = Array.from({ length: 250 }, (_, index) => JSON.stringify({ index, text: 'platform '.repeat(9) }))
  const before = packList(PublishedList.discovery, '{"scan":1}', elements)
  const payload = (record: Buffer | undefined): Buffer => Buffer.from(record?.subarray(5) ?? [])
  // A marked copy shows whether the compressed bytes were used again.
  const marked = (part: number): Buffer => {
    const gzip = payload(before.gzipBodies[part])
    gzip[gzip.readUInt32BE(0) + 20] = (gzip[gzip.readUInt32BE(0) + 20] ?? 0) ^ 0xff
    return gzip
  }
  const stored = (part: number) => ({ elements: before.parts[part] ?? Buffer.alloc(0), gzip: marked(part) })
  const changed = elements.with(120, '{"index":120}')
  const after = packList(PublishedList.discovery, '{"scan":2}', changed, stored)
  const clean = packList(PublishedList.discovery, '{"scan":2}', changed)
  t.same(
    after.gzipBodies.map((body, part) => body?.equals(clean.gzipBodies[part] ?? Buffer.alloc(0))),
    [false, true, false],
  )
})
