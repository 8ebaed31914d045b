import t from 'tap'
import { PublishedList } from '../../../engine/store/published.ts'
import { makeOrganization, openStore } from '../../support/store.ts'

t.test('every page of every list equals JSON.stringify of its elements', async (t) => {
  const opened = openStore(t, { unchecked: true })
  const { store } = opened
  const { id } = makeOrganization(opened, 'Acme')
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

t.test('the tag changes exactly when head or elements change', async (t) => {
  const opened = openStore(t, { unchecked: true })
  const { store } = opened
  const { id } = makeOrganization(opened, 'Acme')
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
