import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { everyCommand } from '../../../deploy/command-model.ts'
import { COMMAND_LINES } from '../../../deploy/release/command-lines.ts'
import { PROGRAMS } from '../../../deploy/release/programs.ts'
import { shellFiles } from '../../../deploy/release/shell-files.ts'

const COMMANDS = PROGRAMS.flatMap(({ commands }) => commands)
const RELEASE = { version: '1.2.3', epochSeconds: Date.parse('2026-11-20') / 1000 }
const FILES = shellFiles(COMMANDS, RELEASE)

t.test('each installed command has a manual page, and completion for three shells', async (t) => {
  t.same(
    [...FILES.keys()].sort(),
    [
      ...['man1/posture-admin.1.gz', 'man8/posture-collector.8.gz', 'man8/posture-service.8.gz'].map(
        (name) => `share/man/${name}`,
      ),
      ...COMMANDS.flatMap(({ name }) => [
        `share/bash-completion/completions/${name}`,
        `share/zsh/vendor-completions/_${name}`,
        `share/fish/vendor_completions.d/${name}.fish`,
      ]),
    ].sort(),
  )
  t.same([...shellFiles(COMMANDS, RELEASE)], [...FILES], 'the same bytes again')
  t.throws(() => shellFiles([{ name: 'other' }], RELEASE), /other is not in COMMAND_LINES/)
})

function textOf(path: string): string {
  const bytes = FILES.get(path) ?? ''
  return typeof bytes === 'string' ? bytes : gunzipSync(bytes).toString()
}

for (const [name, { model, section }] of Object.entries(COMMAND_LINES)) {
  t.test(`${name}: every command and option is in the page and in each completion script`, async (t) => {
    const page = textOf(`share/man/man${section}/${name}.${section}.gz`)
    const scripts = [
      textOf(`share/bash-completion/completions/${name}`),
      textOf(`share/zsh/vendor-completions/_${name}`),
      textOf(`share/fish/vendor_completions.d/${name}.fish`),
    ]
    t.ok(page.startsWith(`.TH "${name.toUpperCase().replace('-', '\\-')}" ${section} "2026-11-20" "`))
    for (const title of ['NAME', 'SYNOPSIS', 'DESCRIPTION', 'OPTIONS', 'FILES', 'EXIT STATUS', 'SEE ALSO']) {
      t.match(page, `\n.SH ${title}\n`)
    }
    for (const { path, options, commands } of everyCommand(model)) {
      if (path.length > 1 && commands.length === 0) t.match(page, `.SS "${path.join(' ').replaceAll('-', '\\-')}`)
      for (const script of scripts) t.match(script, path.at(-1))
      for (const { long, env } of options) {
        if (path.length === 1 || commands.length === 0) t.match(page, `\\fB${long.replaceAll('-', '\\-')}\\fR`)
        if (env !== undefined) t.match(page, `\n.B ${env}\n`)
        t.match(scripts[0], long)
        t.match(scripts[1], `${long}`)
        t.match(scripts[2], ` -l ${long.slice(2)} `)
      }
    }
  })
}

/** The words that bash suggests after the last argument. */
const COMPLETIONS: readonly { readonly args: readonly string[]; readonly found: readonly string[] }[] = [
  { args: ['posture-admin', 're'], found: ['recommendation', 'registry', 'report', 'retention', 'restore'] },
  { args: ['posture-admin', 'key', ''], found: ['create', 'list', 'revoke', 'rotate'] },
  { args: ['posture-admin', 'key', 'create', '--sc'], found: ['--scope'] },
  { args: ['posture-admin', 'key', 'create', '--scope', 'dis'], found: ['discovery:read'] },
  { args: ['posture-admin', 'key', 'create', '--org', ''], found: [] },
  { args: ['posture-admin', 'member', 'role', 'bob', 'ad'], found: ['admin'] },
  { args: ['posture-admin', 'backup', '/etc/hostn'], found: ['/etc/hostname'] },
  { args: ['posture-admin', 'audit', 'list', '--data-dir', '/etc/ssl/c'], found: ['/etc/ssl/certs'] },
  { args: ['posture-admin', 'key', 'no-such', ''], found: ['create', 'list', 'revoke', 'rotate'] },
  { args: ['posture-collector', 'co'], found: ['counters'] },
  { args: ['posture-collector', '--syslog-protocol', 't'], found: ['tls', 'tcp'] },
  { args: ['posture-collector', '--interf'], found: ['--interface'] },
  { args: ['posture-collector', 'outbox', 'p'], found: ['peek'] },
  { args: ['posture-collector', 'read', '--st'], found: ['--stats'] },
  { args: ['posture-service', '--log-level', ''], found: ['DEBUG', 'INFO', 'WARNING', 'ERROR'] },
  { args: ['posture-service', '--api-p'], found: ['--api-port'] },
]

t.test('bash completes commands, options, choices, files and directories', async (t) => {
  const folder = t.testdir()
  const lines = ['set -eu']
  for (const { name } of COMMANDS) {
    writeFileSync(join(folder, name), textOf(`share/bash-completion/completions/${name}`))
    lines.push(`. "${join(folder, name)}"`)
  }
  lines.push(
    // biome-ignore lint/suspicious/noTemplateCurlyInString: of bash
    'ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); "_${1//-/_}" || true; echo "${COMPREPLY[*]-}"; }',
    ...COMPLETIONS.map(({ args }) => `ask ${args.map((word) => `'${word}'`).join(' ')}`),
  )
  const { stdout, stderr, status } = spawnSync('bash', ['-c', lines.join('\n')], { encoding: 'utf8' })
  t.equal(status, 0, stderr)
  t.equal(stderr, '')
  const answers = stdout.split('\n')
  for (const [index, { args, found }] of COMPLETIONS.entries()) {
    t.same((answers[index] ?? '').split(' ').filter(Boolean).sort(), [...found].sort(), args.join(' '))
  }
})
