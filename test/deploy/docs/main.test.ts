import t from 'tap'
import { generatedParts, pageText, withGenerated } from '../../../deploy/docs/main.ts'
import { pagePaths } from '../../../deploy/docs/references.ts'
import { FORMATS } from '../../../engine/formats/formats.ts'

const parts = await generatedParts()

for (const page of pagePaths()) {
  t.test(`${page}: generated parts are current; npm run docs writes them`, async (t) => {
    const text = pageText(page)
    t.ok(withGenerated(page, text, parts) === text, 'run npm run docs')
  })
}

t.test('every generated part is on a page', async (t) => {
  const text = pagePaths().map(pageText).join('\n')
  t.same(
    [...parts.keys()].filter((name) => !text.includes(`<!-- ${name} -->\n`)),
    [],
  )
})

t.test('a marker without a part and a part without an end are errors', async (t) => {
  t.throws(() => withGenerated('a.md', '<!-- table nothing -->\n<!-- end -->', parts), /no generated part/)
  t.throws(
    () => withGenerated('a.md', '<!-- table roles -->\n\n<!-- table roles -->\n', parts),
    /no end of "table roles"/,
  )
  t.match(withGenerated('a.md', '<!-- table roles -->\nold\n<!-- end -->\n', parts), /\| admin \|.*`scan\.request`/)
})

t.test('docs/reference/log-formats.md names every format', async (t) => {
  const named = [...pageText('docs/reference/log-formats.md').matchAll(/^\| (`[^|]*) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([a-z0-9-]+)`/g)].map(([, id]) => id),
  )
  t.same(named.sort(), FORMATS.map(({ id }) => id).sort())
})
