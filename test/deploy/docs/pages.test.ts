import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import t from 'tap'
import { pageText } from '../../../deploy/docs/main.ts'
import { COMMAND_PAGES } from '../../../deploy/docs/page-commands.ts'
import { pagePaths } from '../../../deploy/docs/references.ts'
import { REPOSITORY } from '../../support/programs.ts'

const GUIDE_WORDS_MAX = 900
/** Steps for machines, for Compose and for Kubernetes. */
const CLUSTER_WORDS_MAX = 1200
/** Pages with tasks. The other pages are for lookup. */
const GUIDES = /^docs\/(?:get-started|(?:install|collect|use|connect|operate)\/)/
const README_LINES_MAX = 150
/**
 * The allowed languages of code blocks: `sh` for commands, `text` for output, the others for files.
 */
const LANGUAGES = new Set([
  'sh',
  'text',
  'json',
  'yaml',
  'csv',
  'conf',
  'nginx',
  'ini',
  'powershell',
  'typescript',
  'mermaid',
  'sql',
  'js',
  'python',
])

const CAPTURE_PAGES = readdirSync(join(REPOSITORY, 'test/captures'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.md'))
  .map((name) => join('test/captures', name))
const PAGES = [...pagePaths(), 'SECURITY.md', ...CAPTURE_PAGES]

/** The lines outside code blocks, and the languages of the blocks. */
function proseOf(text: string): { readonly lines: readonly string[]; readonly languages: readonly string[] } {
  const lines: string[] = []
  const languages: string[] = []
  let fence = ''
  for (const line of text.split('\n')) {
    const [, marks = '', language = ''] = /^ *(```+)(\S*)/.exec(line) ?? []
    if (fence !== '') fence = marks === fence ? '' : fence
    else if (marks === '') lines.push(line)
    else {
      fence = marks
      languages.push(language)
    }
  }
  return { lines, languages }
}

/** The anchors of a page, as GitHub derives them from headings. */
function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>()
  for (const line of proseOf(text).lines) {
    const [, heading] = /^#{1,6} +(.*?) *$/.exec(line) ?? []
    if (heading === undefined) continue
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '')
    const anchor = plain
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M} _-]/gu, '')
      .replaceAll(' ', '-')
    for (let copy = 0; ; copy++) {
      const unique = copy === 0 ? anchor : `${anchor}-${copy}`
      if (anchors.has(unique)) continue
      anchors.add(unique)
      break
    }
  }
  return anchors
}

/** The broken links of a page. */
function brokenLinks(page: string, text: string): string[] {
  const prose = proseOf(text)
    .lines.join('\n')
    .replace(/`[^`\n]*`/g, '')
  const targets = [
    ...[...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target),
    ...[...prose.matchAll(/(?:src|srcset|href)="([^"]+)"/g)].map(([, target = '']) => target),
  ]
  return targets.flatMap((target) => {
    if (/^[a-z]+:/.test(target)) return []
    const [path = '', anchor] = target.split('#')
    const file = path === '' ? page : normalize(join(dirname(page), path))
    if (path !== '' && !existsSync(join(REPOSITORY, file))) return [`${target}: no such file`]
    if (anchor === undefined) return []
    const linked = path === '' ? text : readFileSync(join(REPOSITORY, file), 'utf8')
    return anchorsOf(linked).has(anchor) ? [] : [`${target}: no such heading`]
  })
}

for (const page of PAGES) {
  const text = readFileSync(join(REPOSITORY, page), 'utf8')
  t.test(`${page}: links and anchors resolve`, async (t) => {
    t.same(brokenLinks(page, text), [])
  })
}

for (const page of pagePaths().filter((each) => each.startsWith('docs/') || each === 'README.md')) {
  t.test(`${page}: code blocks have a language, and commands have no prompt`, async (t) => {
    const text = pageText(page)
    t.same(
      proseOf(text).languages.filter((language) => !LANGUAGES.has(language)),
      [],
    )
    t.notMatch(text, /^ *```sh\n(?:(?! *```).*\n)*? *[$#] /m, 'no prompt or comment in place of a command')
  })
}

t.test('broken links are reported', async (t) => {
  const text = '# A `b`, C\n[x](nowhere.md) [y](#a-b-c) [z](#d) [w](../SECURITY.md)\n```text\n[v](none.md)\n```\n'
  t.same(brokenLinks('docs/page.md', text), ['nowhere.md: no such file', '#d: no such heading'])
})

t.test('counts of what the program lists are not in prose, where they become wrong', async (t) => {
  const counted = /\b\d+ (?:log )?(?:formats|cases)\b/
  for (const page of pagePaths()) t.notMatch(pageText(page).replace(/```[\s\S]*?```/g, ''), counted, page)
})

/** Texts between spaces with a letter or a digit. Lines of tables are none. */
function wordsOf(page: string): number {
  return page.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length
}

t.test('no guide exceeds the word limit', async (t) => {
  const guides = pagePaths().filter((page) => GUIDES.test(page))
  t.ok(guides.length > 5)
  for (const guide of guides) {
    const words = wordsOf(pageText(guide))
    const max = guide.endsWith('/cluster.md') ? CLUSTER_WORDS_MAX : GUIDE_WORDS_MAX
    t.ok(words <= max, `${guide}: ${words} words, expected ${max} at most`)
  }
  t.ok(pageText('README.md').split('\n').length - 1 <= README_LINES_MAX, 'README.md')
})

/** Software that `npm run docs` does not run. Only its commands may have a written example. */
const NOT_RUN =
  /\b(?:docker|kubectl|nk|cluster (?:status|streams|leave)|systemctl|journalctl|apt|rsyslogd|syslog-ng|npm run release|https:\/\/chatgpt\.com)\b/
/** Commands that need a passkey or an identity provider. */
const NEEDS_BROWSER = /\b(?:passkey|sign-in set|secrets\.key)\b/

/** Blocks of commands without output, and examples of commands that could be run. */
function wrongSamples(text: string): string[] {
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```\n(?:\n<!-- (printed|example)\b.*-->\n)?/gm)].flatMap(
    ([, commands = '', kind]) => {
      if (kind === undefined) return [`no output: ${commands}`]
      return kind === 'example' && !NOT_RUN.test(commands) && !NEEDS_BROWSER.test(commands)
        ? [`npm run docs can run it: ${commands}`]
        : []
    },
  )
}

for (const page of pagePaths()) {
  if (!GUIDES.test(page)) continue
  t.test(`${page}: every block of commands has its output`, async (t) => {
    t.same(wrongSamples(pageText(page)), [])
    t.ok(page in COMMAND_PAGES || !pageText(page).includes('<!-- printed'), 'npm run docs generates its outputs')
  })
}

t.test('commands without output, and examples of commands that could be run, are reported', async (t) => {
  t.same(wrongSamples('```sh\nls\n```\n'), ['no output: ls\n'])
  t.same(wrongSamples('```sh\nls\n```\n\n<!-- example -->\n<!-- end -->\n'), ['npm run docs can run it: ls\n'])
  t.same(wrongSamples('```sh\nls\n```\n\n<!-- printed 3 -->\n<!-- end -->\n'), [])
  t.same(wrongSamples('```sh\nkubectl get pods\n```\n\n<!-- example -->\n<!-- end -->\n'), [])
})

t.test('every page is in the folder for its readers', async (t) => {
  const direct = readdirSync(join(REPOSITORY, 'docs'), { withFileTypes: true })
  t.same(
    direct.filter((entry) => entry.isFile()).map(({ name }) => name),
    ['concepts.md', 'get-started.md', 'index.md'],
  )
})

t.test('source files named in the documentation exist', async (t) => {
  const folders = ['api', 'bench', 'collector', 'console', 'deploy', 'engine', 'registry', 'test']
  const sources = folders
    .filter((folder) => existsSync(join(REPOSITORY, folder)))
    .flatMap((folder) =>
      readdirSync(join(REPOSITORY, folder), { recursive: true, encoding: 'utf8' }).map(
        (name) => `/${join(folder, name)}`,
      ),
    )
  for (const page of pagePaths().filter((each) => !/CHANGELOG|design\/testing/.test(each))) {
    const named = [...pageText(page).matchAll(/`([\w./-]+\.ts)`/g)].map(([, file = '']) => file)
    t.same(
      named.filter((file) => !sources.some((source) => source.endsWith(`/${file}`))),
      [],
      page,
    )
  }
})
