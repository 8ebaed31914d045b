import { readFileSync, writeFileSync } from 'node:fs'
import { Fault } from '../../../engine/kernel/process/error-codes.ts'
import { createProgram, runProgram } from '../../../engine/kernel/process/program.ts'
import { loadCatalog } from '../../../registry/catalog.ts'
import { canonicalName } from '../../../registry/domain-name.ts'
import { NameMatcher } from '../../../registry/match.ts'
import { namesByRule, needsReason, POPULAR_RULES_FILE, type PopularRule, readPopularRules } from './popular-rules.ts'

/*
 * npm run registry:popular -- LIST...: compares the registry with lists of popular names, and
 * writes rules.tsv. Reasons of known rules are kept. The names that need a reason are only printed.
 */

const HEADER = `# How many popular names each rule matches. Written by: npm run registry:popular -- LIST...
# Columns, separated by tabs: domain of the rule, number of names, reason. A rule for use of AI that matches a name
# needs a reason. No name of a list is stored here. Lists of the last comparison:`

const program = createProgram('npm run registry:popular --', 'Compare the registry with lists of popular names')
  .argument('<list...>', 'Lists: one name a line, "rank,name", or JSON with a member "list"')
  .requiredOption('--source <text...>', 'Name, date and license of each list, for the header of the file')
program.action((files: string[], { source }: { source: string[] }) => {
  const matcher = new NameMatcher(loadCatalog())
  const stored = readPopularRules()
  const names = files.flatMap(readList)
  const found = namesByRule(matcher, names)
  const rows: PopularRule[] = matcher.catalog.rules.map(({ domain }) => ({
    domain,
    names: found.get(domain)?.length ?? 0,
    reason: stored.get(domain)?.reason ?? '',
  }))
  for (const rule of matcher.catalog.rules) {
    const matched = found.get(rule.domain) ?? []
    const before = stored.get(rule.domain)
    if (before?.names !== matched.length)
      print(`${rule.domain}: ${before?.names ?? 'not compared'} -> ${matched.length}`)
    if (needsReason(rule, matched.length) && !before?.reason)
      print(`  needs a reason: ${matched.slice(0, 10).join(' ')}`)
  }
  for (const domain of stored.keys()) if (!found.has(domain)) print(`${domain}: no longer in the registry`)
  rows.sort((a, b) => (a.domain < b.domain ? -1 : 1))
  const lines = rows.map((row) => `${row.domain}\t${row.names}${row.reason === '' ? '' : `\t${row.reason}`}`)
  writeFileSync(
    POPULAR_RULES_FILE,
    `${HEADER}\n${source.map((text) => `#   ${text}`).join('\n')}\n${lines.join('\n')}\n`,
  )
  print(`${new Set(names).size} names, ${rows.filter(({ names: count }) => count > 0).length} rules with a match`)
})
await runProgram(program)

function readList(file: string): string[] {
  const text = readFileSync(file, 'utf8')
  const lines = text.startsWith('{') ? ((JSON.parse(text) as { list?: string[] }).list ?? []) : text.split('\n')
  const names = lines.flatMap((line) => {
    const name = canonicalName((line.split(',').at(-1) ?? '').trim())
    return name?.includes('.') === true ? [name] : []
  })
  if (names.length === 0) throw new Fault('USAGE', `${file}: no host names; expected one a line, "rank,name" or JSON`)
  return names
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
