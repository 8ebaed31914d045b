import { execFileSync } from 'node:child_process'
import { cpSync, lchownSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { commandModel, everyCommand } from '../../../deploy/command-model.ts'
import { adminProgram } from '../../../engine/cli/program.ts'
import { frameworkFile } from '../../support/framework-file.ts'
import { FilesOfRoot, giveTo, SERVICE_USER, TRAPS } from '../../support/hostile-store.ts'
import { opensslCertificate } from '../../support/openssl-certificate.ts'
import { skipUnlessRoot } from '../../support/other-user.ts'
import { run } from '../../support/programs.ts'
import { laterVersion, makeUpdate, writeRoot } from '../../support/registry-updates.ts'
import { rootSite } from '../../support/root-site.ts'

/*
 * Every command of posture-admin as root, on a data directory of the service's user. See
 * root.test.ts.
 */

type AnyCommand = Awaited<ReturnType<typeof adminProgram>>

interface NamedCommand {
  readonly words: readonly string[]
  readonly command: AnyCommand
}

function commandsOf(command: AnyCommand, words: readonly string[] = []): NamedCommand[] {
  return [{ words, command }, ...command.commands.flatMap((each) => commandsOf(each, [...words, each.name()]))]
}

/** The name of each option and argument that is a file. */
async function fileParameters(): Promise<string[]> {
  return commandsOf(await adminProgram()).flatMap(({ words, command }) => [
    ...command.registeredArguments
      .filter((each) => each.name() === 'file' || (words.join(' ') === 'registry update' && each.name() === 'from'))
      .map((each) => `${words.join(' ')} <${each.name()}>`),
    ...command.options.filter(({ flags }) => flags.includes('<file>')).map(({ long }) => `${words.join(' ')} ${long}`),
  ])
}

t.test(
  'files that root has named are read and written with the rights of root',
  { skip: skipUnlessRoot },
  async (t) => {
    const { at, ofRoot, token, tokenId, data } = await rootSite(t)
    const file = (name: string, content?: string | Uint8Array): string => {
      if (content !== undefined) writeFileSync(join(ofRoot, name), content, { mode: 0o600 })
      return join(ofRoot, name)
    }
    const acme = ['--org', 'Acme', ...at]
    const log = file('log', `${Math.floor(Date.now() / 1000)};192.0.2.45;claude.ai\n`)
    const tokenFile = file('token', token)
    const rule = file('rule.yaml', 'name: own\ndelimiter: ";"\nfields: { time: 1, client: 2, host: 3 }\n')
    const registry = file('registry.yaml', 'disable: [claude]\n')
    const framework = file('framework.yaml', frameworkFile([{ id: 'a-1' }]))
    const secret = file('secret', 'https://hooks.slack.com/services/secret')
    const pem = writeRoot(ofRoot)
    const update = file('update', makeUpdate(laterVersion(1)))
    const { certificateFile } = opensslCertificate(ofRoot, 'ECDSA P-256')
    const channel = ['alert', 'channel', 'add']
    const provider = ['--issuer', 'https://id.example', '--client-id', 'id', '--name', 'Id', '--default-role', 'viewer']
    const keys = ['--secrets-key-file', join(data, 'secrets.key')]

    const rows: readonly { readonly uses: string; readonly words: readonly string[]; readonly makes?: string }[] = [
      {
        uses: 'ingest file <file>, ingest file --token-file, ingest file --rule',
        words: ['ingest', 'file', log, '--token-file', tokenFile, '--rule', rule, ...at],
      },
      { uses: 'token set --format-rule', words: ['token', 'set', tokenId, '--format-rule', rule, ...acme] },
      {
        uses: 'client names import <file>',
        words: ['client', 'names', 'import', file('names', '192.0.2.1,a\n'), ...acme],
      },
      {
        uses: 'client groups import <file>',
        words: ['client', 'groups', 'import', file('groups', '192.0.2.1,Finance\n'), ...acme],
      },
      { uses: '', words: ['scan', 'run', ...acme] },
      {
        uses: 'blocklist --out',
        words: ['blocklist', '--not-approved', '--format', 'hosts', '--out', file('list'), ...acme],
        makes: 'list',
      },
      {
        uses: 'export --out, export --cursor',
        words: ['export', 'platforms', '--format', 'csv', '--out', file('csv'), '--cursor', file('cursor'), ...acme],
        makes: 'cursor',
      },
      {
        uses: '',
        words: ['export', 'platforms', '--format', 'csv', '--out', file('csv'), '--cursor', file('cursor'), ...acme],
        makes: 'csv',
      },
      { uses: 'report --out', words: ['report', '--out', file('report.html'), ...acme], makes: 'report.html' },
      { uses: 'framework validate <file>', words: ['framework', 'validate', framework] },
      { uses: 'framework add <file>', words: ['framework', 'add', framework, ...acme] },
      {
        uses: 'alert channel add --url-file, alert channel add --secrets-key-file',
        words: [...channel, 'slack', '--kind', 'slack', '--url-file', secret, ...keys, ...acme],
      },
      {
        uses: 'alert channel add --password-file, alert channel add --ca-file',
        words: [
          ...[...channel, 'mail', '--kind', 'smtp', '--host', 'mail.example', '--user', 'u', '--from', 'a@b.example'],
          ...['--to', 'c@d.example', '--password-file', secret, '--ca-file', certificateFile, ...acme],
        ],
      },
      {
        uses: 'sign-in set --client-secret-file, sign-in set --secrets-key-file',
        words: ['sign-in', 'set', ...provider, '--client-secret-file', secret, ...keys, ...acme],
      },
      ...['list', 'search claude', 'show claude', 'check claude.ai', 'stats'].map((words) => ({
        uses: `registry ${words.split(' ')[0]} --registry-file`,
        words: ['registry', ...words.split(' '), '--registry-file', file('empty.yaml', 'disable: []\n'), ...at],
      })),
      { uses: 'registry validate <file>', words: ['registry', 'validate', registry, ...acme] },
      { uses: 'registry diff <file>', words: ['registry', 'diff', registry, ...acme] },
      { uses: 'registry add <file>', words: ['registry', 'add', registry, ...acme] },
      {
        uses: 'registry update <from>, registry update --registry-root, registry update --ca-file',
        words: ['registry', 'update', update, '--registry-root', pem, '--ca-file', certificateFile, ...at],
      },
      { uses: 'backup <file>', words: ['backup', file('backup'), ...at], makes: 'backup' },
      { uses: 'restore <file>', words: ['restore', file('backup'), '--force', ...at] },
      {
        uses: 'organization remove --audit-file',
        words: ['organization', 'remove', 'Acme', '--confirm', 'Acme', '--audit-file', file('audit'), ...at],
        makes: 'audit',
      },
    ]
    const covered = rows.flatMap(({ uses }) => uses.split(', '))
    const elsewhere = [
      'assessment export --output',
      'assessment import <file>',
      'alert channel test --secrets-key-file',
    ]
    t.same((await fileParameters()).filter((each) => !covered.includes(each)).sort(), elsewhere.sort())

    for (const { uses, words, makes } of rows) {
      const { status, stderr } = await run('admin', words)
      t.equal(status, 0, `${words.join(' ')}: ${stderr}`)
      if (makes === undefined) continue
      const { uid, size } = statSync(file(makes))
      t.equal(uid, 0, uses)
      t.ok(size > 0, uses)
    }
    t.same(
      readdirSync(ofRoot).filter((name) => name.endsWith('.part')),
      [],
    )
    const names = readdirSync(data, { recursive: true, encoding: 'utf8' })
    t.same(
      names.filter((name) => statSync(join(data, name)).uid !== SERVICE_USER.uid),
      [],
    )
  },
)

t.test('no command of root reads through a link of the service', { skip: skipUnlessRoot }, async (t) => {
  const { data, at, ofRoot, token } = await rootSite(t)
  const file = (name: string, content: string): string => {
    writeFileSync(join(ofRoot, name), content, { mode: 0o600 })
    return join(ofRoot, name)
  }
  const link = join(data, 'link')
  symlinkSync(file('secret', 'root-secret\n'), link)
  lchownSync(link, SERVICE_USER.uid, SERVICE_USER.gid)
  const acme = ['--org', 'Acme', ...at]
  const tokenFile = ['--token-file', file('token', token)]
  const log = file('log', '')
  const pem = writeRoot(ofRoot)
  const channel = ['alert', 'channel', 'add', 'a', '--kind']
  const smtp = ['--host', 'mail.example', '--from', 'a@b.example', '--to', 'c@d.example']
  const rows = [
    ['ingest', 'file', link, ...tokenFile, ...at],
    ['ingest', 'file', log, '--rule', link, ...tokenFile, ...at],
    ['ingest', 'file', log, '--token-file', link, ...at],
    ['client', 'names', 'import', link, ...acme],
    ['client', 'groups', 'import', link, ...acme],
    ['export', 'platforms', '--format', 'csv', '--out', join(ofRoot, 'csv'), '--cursor', link, ...acme],
    ['framework', 'add', link, ...acme],
    ['assessment', 'import', link, ...acme],
    ['registry', 'add', link, ...acme],
    ['registry', 'validate', link, ...acme],
    ['registry', 'update', link, '--registry-root', pem, ...at],
    ['registry', 'update', log, '--registry-root', link, ...at],
    ['registry', 'update', log, '--registry-root', pem, '--ca-file', link, ...at],
    [...channel, 'slack', '--url-file', link, ...acme],
    [...channel, 'smtp', ...smtp, '--ca-file', link, ...acme],
    ['restore', link, '--force', ...at],
  ]
  for (const words of rows) {
    const { status, stdout, stderr } = await run('admin', words)
    t.not(status, 0, words.join(' '))
    t.notMatch(stdout + stderr, /root-secret/, words.join(' '))
    t.match(stderr, /uid 1234 controls this path and may not read it/, words.join(' '))
  }
  const pipe = join(ofRoot, 'pipe')
  execFileSync('mkfifo', [pipe])
  t.match(await run('admin', ['restore', pipe, '--force', ...at]), { stderr: /BACKUP_FILE .*not a complete backup/ })
})

t.test('no command of root follows a link of the service', { skip: skipUnlessRoot }, async (t) => {
  const { directory, data, at, ofRoot, token, tokenId } = await rootSite(t)
  const root = new FilesOfRoot(join(directory, 'victims'))
  const file = (name: string, content: string | Uint8Array): string => {
    writeFileSync(join(ofRoot, name), content, { mode: 0o600 })
    return join(ofRoot, name)
  }
  const input = file('input', '')
  const registry = file('registry.yaml', 'disable: [claude]\n')
  const url = file('url', 'https://hooks.slack.com/services/secret')
  const backup = join(ofRoot, 'a.backup')
  t.match(await run('admin', ['backup', backup, ...at]), { status: 0 })
  // Of commands that check their arguments before they open the store.
  const given: Readonly<Record<string, readonly string[]>> = {
    'token set': [tokenId, '--label', 'branch'],
    'ingest file': [input, '--token-file', file('token', token)],
    'scan diff': ['2026-11-20', '2026-11-21'],
    'assessment create': ['--framework', 'cis-v8'],
    'assessment answer': ['a', 'a-1', 'yes'],
    'framework add': [file('framework.yaml', frameworkFile([{ id: 'a-1' }]))],
    report: ['--out', join(ofRoot, 'report.html')],
    'alert channel add': ['slack', '--kind', 'slack', '--url-file', url],
    'alert rule set': ['new-platform', 'default'],
    'registry add': [registry],
    'registry update': [file('update', makeUpdate(laterVersion(1))), '--registry-root', writeRoot(ofRoot)],
    backup: [join(ofRoot, 'b.backup')],
    restore: [backup, '--force'],
  }
  const copy = join(directory, 'copy')
  for (const command of everyCommand(commandModel(await adminProgram()))) {
    const words = command.path.slice(1)
    if (!command.options.some(({ long }) => long === '--data-dir')) continue
    const values = command.arguments.map(({ name, choices }) => (name === 'file' ? input : (choices[0] ?? 'a')))
    const options = command.options
      .filter(({ required }) => required)
      .flatMap(({ long, choices }) => [long, choices[0] ?? 'a'])
    rmSync(copy, { recursive: true, force: true })
    cpSync(data, copy, { recursive: true, filter: (from) => !from.endsWith('.sock') })
    giveTo(SERVICE_USER, copy)
    for (const { file, set } of TRAPS) if (file) set(join(copy, 'store'), root)
    const own = given[words.join(' ')]
    const ended = await run('admin', [...words, ...(own ?? [...values, ...options]), '--data-dir', copy])
    t.equal(root.damage, '', words.join(' '))
    t.equal(ended.signal, null, words.join(' '))
    t.notMatch(ended.stderr, /INTERNAL/, words.join(' '))
    t.match(ended.stderr, /mdb|Permission denied/, `${words.join(' ')} has opened the store`)
  }
})
