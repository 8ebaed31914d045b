import { readFileSync } from 'node:fs'
import { createProgram, runProgram } from '../engine/kernel/process/program.ts'
import { loadCatalog } from '../registry/catalog.ts'
import { canonicalName } from '../registry/domain-name.ts'
import { NameMatcher } from '../registry/match.ts'
import { SHARED_HOSTS } from '../registry/quality.ts'

/*
 * npm run registry:gaps -- FILE...: prints the hosts of lists of AI services that no rule matches,
 * with the list that names each. CONTRIBUTING.md has the monthly round.
 */

/** How lists name a host. The first of these that matches anything in a file is its format. */
const FORMATS: readonly (readonly [format: string, host: RegExp])[] = [
  ['addresses, as in presets of coding tools and models.dev', /\bhttps?:\/\/([\w-]+(?:\.[\w-]+)+)/g],
  ['proxy rules', /\bDOMAIN(?:-SUFFIX)?,\s*([\w-]+(?:\.[\w-]+)+)/g],
  ['names, one a line', /^(?:full:|domain:|\*\.|\|\||0\.0\.0\.0 )?([\w-]+(?:\.[\w-]+)+)(?:[\s^]|$)/gm],
]

/** Hosts of general use that such lists contain beside those of AI services. */
const GENERAL =
  /(?:^|\.)(?:github\.com|githubusercontent\.com|npmjs\.(?:com|org)|pypi\.org|shields\.io|w3\.org|json-schema\.org|schema\.org|example\.(?:com|org|net)|localhost|youtube\.com|discord\.(?:gg|com)|x\.com|t\.me|wikipedia\.org|google\.com|microsoft\.com|apple\.com|aws\.amazon\.com)$/

const program = createProgram('npm run registry:gaps --', 'Print hosts of lists that the registry does not have')
  .argument('<file...>', `Lists: ${FORMATS.map(([format]) => format).join('; ')}`)
  .option('--all', 'Print hosts of general use, too')
program.action((files: string[], { all }: { all?: boolean }) => {
  const matcher = new NameMatcher(loadCatalog())
  const lists = new Map<string, Set<string>>()
  let known = 0
  for (const file of files) {
    for (const host of hostsOf(readFileSync(file, 'utf8'))) {
      const name = canonicalName(host)
      if (name === undefined || (all !== true && (GENERAL.test(name) || SHARED_HOSTS.has(name)))) continue
      if (matcher.match(name) !== undefined) known++
      else lists.set(name, (lists.get(name) ?? new Set()).add(file))
    }
  }
  for (const [name, named] of [...lists].sort()) process.stdout.write(`${name}\t${[...named].join(', ')}\n`)
  process.stderr.write(`${known} hosts have a rule, ${lists.size} have none\n`)
})
await runProgram(program)

function hostsOf(text: string): Set<string> {
  for (const [, pattern] of FORMATS) {
    const hosts = new Set([...text.matchAll(pattern)].map(([, host = '']) => host.toLowerCase()))
    if (hosts.size > 0) return hosts
  }
  return new Set()
}
