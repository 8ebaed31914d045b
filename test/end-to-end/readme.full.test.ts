import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { COMMAND_PAGES } from '../../deploy/docs/command-pages.ts'
import { withOutputs } from '../../deploy/docs/page-commands.ts'
import { terminalPicture } from '../../deploy/docs/terminal-picture.ts'
import { skipNamespaces } from '../support/namespace.ts'
import { REPOSITORY } from '../support/programs.ts'

const page = (name: string): string => readFileSync(join(REPOSITORY, name), 'utf8')
const README = page('README.md')
const GET_STARTED = page('docs/get-started.md')

/**
 * Normalizes output. Hexadecimal digits are random. Numbers and the order of rows depend on the
 * time: around midnight, the demo's events are evidence of two days. Names and columns do not
 * change.
 */
function normalized(text: string): string[] {
  const lines = text.split('\n').map((line) => line.replace(/\b[0-9a-f]{8,}\b|\d+/g, '#').replace(/[ ─]+/g, ' '))
  return lines.sort()
}

/** One page of each kind of site, and README.md. `npm run docs` runs the commands of all pages. */
const TESTED = [
  'README.md',
  'docs/get-started.md',
  'docs/guides/deploy-with-debian-packages.md',
  'docs/guides/troubleshoot.md',
] as const

for (const name of TESTED) {
  const title = `${name} shows the current output of its commands; npm run docs updates it`
  t.test(title, { skip: skipNamespaces }, async (t) => {
    const site = COMMAND_PAGES[name]
    if (site === undefined) throw new Error(`${name} is not in COMMAND_PAGES`)
    t.same(normalized(await withOutputs(page(name), site)), normalized(page(name)))
  })
}

t.test('a command that fails is reported with its output', { skip: skipNamespaces }, async (t) => {
  const failing = '```sh\necho found; exit 3\n```\n\n<!-- printed -->\n<!-- end -->\n'
  await t.rejects(withOutputs(failing, 'clone'), { message: /status 3\nfound/ })
})

t.test('every command of README.md is run by a test', async (t) => {
  const blocks = [...README.matchAll(/^```sh\n([\s\S]*?)^```\n\n(<!-- printed)?/gm)]
  const notRunAbove = blocks.filter(([, , marker]) => marker === undefined).map(([, commands = '']) => commands.trim())
  // npm start is the first command of docs/get-started.md; npm test cannot run itself.
  t.same(notRunAbove, ['npm start', 'npm test'])
  t.match(GET_STARTED, '```sh\nnpm start\n```\n\n<!-- printed until serving until Ctrl-C -->\n```text\n')
  const { scripts } = JSON.parse(page('package.json')) as { scripts: Record<string, string> }
  t.equal(scripts['start'], 'node dist/deploy/demo.js', 'what the test runs in place of npm start')
  t.match(page('.ci/run'), /^npm test /m, 'continuous integration runs it')
})

t.test('the pictures in README.md show the output in docs/get-started.md', async (t) => {
  for (const theme of ['light', 'dark'] as const) {
    const file = `docs/images/npm-start-${theme}.svg`
    t.equal(page(file), terminalPicture(GET_STARTED, theme), file)
    t.match(README, file)
  }
})

t.test('README.md has at most 150 lines', async (t) => {
  t.ok(README.split('\n').length <= 150)
})
