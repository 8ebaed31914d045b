import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { PROGRAMS } from '../../../deploy/release/programs.ts'
import { shellFiles } from '../../../deploy/release/shell-files.ts'

const COMMANDS = PROGRAMS.flatMap(({ commands }) => commands)

/** Writes the files to a folder, with uncompressed manual pages. Returns their paths. */
function written(t: { testdir(): string }): string[] {
  const folder = t.testdir()
  return [...shellFiles(COMMANDS, { version: '1.2.3', epochSeconds: 1_795_132_800 })].map(([path, bytes]) => {
    const file = join(folder, path.replace(/\.gz$/, ''))
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, path.endsWith('.gz') ? gunzipSync(bytes as Buffer) : bytes)
    return file
  })
}

t.test('mandoc and groff accept the manual pages', async (t) => {
  const pages = written(t).filter((file) => file.includes('/man/'))
  t.equal(pages.length, 3)
  for (const page of pages) {
    const lint = spawnSync('mandoc', ['-T', 'lint', '-W', 'warning', page], { encoding: 'utf8' })
    t.match(lint, { status: 0, stdout: '', stderr: '' }, basename(page))
    const shown = execFileSync('mandoc', ['-T', 'ascii', page], { encoding: 'utf8' })
    // biome-ignore lint/suspicious/noControlCharactersInRegex: a backspace overstrikes bold text
    t.match(shown.replaceAll(/.\u0008/g, ''), /^EXIT STATUS$/m)
    const groff = spawnSync('groff', ['-man', '-ww', '-Tutf8', page], { encoding: 'utf8' })
    t.match(groff, { status: 0, stderr: '' }, basename(page))
  }
})

t.test('zsh and fish accept their scripts, and fish completes', async (t) => {
  const files = written(t)
  for (const file of files.filter((name) => name.includes('/zsh/'))) {
    t.match(spawnSync('zsh', ['-n', file], { encoding: 'utf8' }), { status: 0, stderr: '' }, basename(file))
  }
  for (const file of files.filter((name) => name.endsWith('.fish'))) {
    t.match(spawnSync('fish', ['-n', file], { encoding: 'utf8' }), { status: 0, stderr: '' }, basename(file))
  }
  const script = files.find((name) => name.endsWith('posture-admin.fish'))
  const completed = (line: string): string => {
    const command = `source ${script}; complete -C '${line}'`
    const { stdout, stderr } = spawnSync('fish', ['--no-config', '-c', command], { encoding: 'utf8' })
    t.equal(stderr, '')
    return stdout
  }
  t.match(completed('posture-admin ke'), /^key\tManage API keys/)
  t.match(completed('posture-admin key create --scope dis'), /^discovery:read\t/)
  t.match(completed('posture-admin member role bob ow'), /^owner$/m)
  t.match(completed('posture-admin backup /etc/hostn'), /^\/etc\/hostname$/m)
})

t.test('zsh completes subcommands in its own completion system', async (t) => {
  const script = written(t).find((name) => name.endsWith('/_posture-admin')) ?? ''
  // Without a terminal there is no completion widget, so the functions that show matches print them
  // instead.
  const program = `
    _describe() { local -a all; all=("\${(@P)4}"); print -l -- "\${all[@]%%:*}" }
    _arguments() { state=$want; line=($chosen) }
    want=command chosen=''; source ${script}
    want=argument chosen=key
    _posture_admin_key() { print -- in key }
    _posture_admin`
  const { stdout, stderr } = spawnSync('zsh', ['-f', '-c', program], { encoding: 'utf8' })
  t.equal(stderr, '')
  t.match(stdout, /^setup\norganization\nmember\n/)
  t.match(stdout, /\nin key\n$/)
})
