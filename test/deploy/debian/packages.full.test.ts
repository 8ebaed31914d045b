import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import t from 'tap'
import { DebianTree, type Machine } from '../../support/debian.ts'
import { ip, namespace, skipNamespaces as skip } from '../../support/namespace.ts'
import { DEMO_CAPTURE, debianPackage, demoMatches, EMULATED, THIS_MACHINE } from '../../support/released.ts'

const PROGRAMS = ['posture-collector', 'posture-service'] as const
const SETTINGS = '/etc/posture-collector/collector.env'
const STORE = '--data-dir /var/lib/posture-service'
const SYSTEMD = 'systemd systemd-sysv dbus'

/** Copies packages into the tree. Returns their paths in it. */
function copyPackages(tree: DebianTree, machine: 'x86_64' | 'arm64' = THIS_MACHINE): string[] {
  return PROGRAMS.map((program) => {
    const name = `/root/${program}-${machine}.deb`
    copyFileSync(debianPackage(program, machine), join(tree.root, name))
    return name
  })
}

/** The same package with a higher version. */
function nextVersion(tree: DebianTree, file: string, version: string): string {
  const next = file.replace('.deb', `-${version}.deb`)
  tree.run(
    `rm -rf /root/x && dpkg-deb -R ${file} /root/x && sed -i 's/^Version: .*/Version: ${version}/' /root/x/DEBIAN/control`,
  )
  tree.run(`dpkg-deb --root-owner-group -Znone -b /root/x ${next} && rm -rf /root/x`)
  return next
}

t.test(
  'a package is installed, runs, and is upgraded, removed and purged under systemd',
  { skip, timeout: 300_000 },
  async (t) => {
    const tree = new DebianTree(t)
    const network = `spsdeb${process.pid}`
    const inside = namespace(t, network)
    ip(...inside('ip', 'link', 'add', 'near', 'type', 'veth', 'peer', 'name', 'far'))
    // The demo's frames come from a link with a larger MTU than Ethernet's.
    for (const link of ['near', 'far']) ip(...inside('ip', 'link', 'set', link, 'mtu', '1600'))
    for (const link of ['lo', 'near', 'far']) ip(...inside('ip', 'link', 'set', link, 'up'))

    const [collector = '', service = ''] = copyPackages(tree)
    tree.run('apt-get update')
    const before = files(tree)
    const logged = tree.run(
      `apt-get install -y --no-install-recommends ${SYSTEMD} && apt-get install -y ${collector} ${service}`,
    )
    t.match(
      logged,
      /^posture-collector: write the monitoring token into \/etc\/posture-collector\/token, then: systemctl enable --now posture-collector$/m,
    )
    t.match(tree.run('cd / && md5sum --quiet -c /var/lib/dpkg/info/posture-*.md5sums && echo sound'), 'sound')
    t.equal(tree.run(`stat -c '%U %G %a' ${SETTINGS}`), 'root posture-collector 640\n')
    t.equal(tree.run('systemd-analyze verify /lib/systemd/system/posture-*.service'), '')
    const versions = PROGRAMS.map((_, i) => nextVersion(tree, [collector, service][i] ?? '', '0.99.0'))

    const machine = await tree.boot(t, network)
    t.equal(await state(machine, 'posture-service'), 'active', 'the service runs at once')
    t.equal(await state(machine, 'posture-collector'), 'inactive', 'the collector waits for its token')

    await machine.run(`posture-admin organization create Acme --domain acme.example ${STORE}`)
    const token = JSON.parse(
      await machine.run(`posture-admin token generate sensor --org Acme ${STORE} 2>/dev/null`),
    ) as {
      token: string
    }
    const tokenFile = '/etc/posture-collector/token'
    await machine.run(`install -m 600 -o posture-collector /dev/null ${tokenFile}`)
    writeFileSync(join(tree.root, tokenFile), `${token.token}\n`)
    const lines = [`SVC_TOKEN_FILE=${tokenFile}`, 'INTERFACE=far', 'EVENT_WINDOW_SECONDS=0', 'SVC_ENDPOINT=127.0.0.1']
    const ca = '/etc/posture-collector/ca.pem'
    await machine.run(`install -m 644 /var/lib/posture-service/tls/certificate.pem ${ca}`)
    writeFileSync(join(tree.root, SETTINGS), [...lines, `SERVICE_CA_FILE=${ca}`, ''].join('\n'))
    t.match(await machine.run(`posture-collector check --settings-file ${SETTINGS}`), /token.*ok/)
    await machine.run('systemctl enable --now posture-collector')

    await t.test('live capture in the unit’s sandbox reaches a scan', async (t) => {
      await until(() => machine.try('posture-collector counters | grep packets'), /packets/)
      execFileSync('ip', inside('tcpreplay', '--quiet', '--timer=nano', '-i', 'near', '--pps=200', DEMO_CAPTURE), {
        stdio: 'ignore',
      })
      const wanted = Object.values(demoMatches()).reduce((sum, count) => sum + count, 0)
      await until(() => machine.try('posture-collector counters'), new RegExp(`"acknowledged","count":${wanted}\\b`))
      t.same(await scanned(machine), demoMatches())
      const status = await machine.run('cat /proc/$(systemctl show --value -p MainPID posture-collector)/status')
      for (const line of ['CapEff:\t0000000000002000', 'CapBnd:\t0000000000002000', 'NoNewPrivs:\t1', 'Seccomp:\t2']) {
        t.match(status, line)
      }
      t.notMatch(status, /^Uid:\t0/m)
    })

    await t.test('a killed program restarts', async (t) => {
      for (const program of PROGRAMS) {
        const first = await pid(machine, program)
        await machine.run(`systemctl kill --kill-whom=main -s SIGKILL ${program}`)
        t.not(await untilOther(machine, program, first), first, program)
      }
    })

    await t.test('an upgrade starts the new version and keeps data and settings', async (t) => {
      const first = await pid(machine, 'posture-service')
      await machine.run('systemctl stop posture-collector')
      const logged = await machine.run(`dpkg -i ${versions.join(' ')}`)
      t.notMatch(logged, /conffile|prompt/i, 'no prompt')
      t.not(await untilOther(machine, 'posture-service', first), first)
      t.match(await machine.run('dpkg-query --show posture-service'), '0.99.0')
      t.equal(await pid(machine, 'posture-collector'), '0', 'a stopped unit stays stopped')
      await machine.run('systemctl start posture-collector')
      t.same(await scanned(machine), demoMatches())
      t.equal(tree.run(`stat -c '%U %G %a' ${SETTINGS}`), 'root posture-collector 640\n')
      t.match(readFileSync(join(tree.root, SETTINGS), 'utf8'), lines.join('\n'))
    })

    await t.test(
      'removing a package keeps data and settings, and a new installation continues with them',
      async (t) => {
        await machine.run(`dpkg -r ${PROGRAMS.join(' ')}`)
        t.equal(
          await machine.try('ls -l /proc/[0-9]*/exe 2>/dev/null | grep /usr/lib/posture'),
          '',
          'no process is left',
        )
        t.ok(existsSync(join(tree.root, SETTINGS)))
        t.ok(existsSync(join(tree.root, 'var/lib/posture-service/store')))
        await machine.run(`dpkg -i ${versions.join(' ')}`)
        for (const program of PROGRAMS) {
          t.equal(await state(machine, program), 'active', program)
        }
        t.same(await scanned(machine), demoMatches())
      },
    )

    await t.test('purging a package leaves only the users', async (t) => {
      await machine.run(`dpkg -P ${PROGRAMS.join(' ')}`)
      const left = files(tree).filter((file) => /posture/.test(file) && !before.includes(file))
      t.same(
        left.filter((file) => !file.startsWith('/root/') && !file.startsWith('/var/log/journal')),
        // A file that the administrator created.
        [`/etc/posture-collector`, ca].filter((file) => existsSync(join(tree.root, file))),
      )
      t.match(await machine.try('systemctl status posture-service'), /could not be found/)
    })
  },
)

t.test('the packages of the other architecture can be installed and removed', { skip }, async (t) => {
  const tree = new DebianTree(t)
  const other = THIS_MACHINE === 'x86_64' ? 'arm64' : 'x86_64'
  tree.run('apt-get update && apt-get install -y --no-install-recommends adduser')
  // The package's scripts run on every architecture. Its dependencies for the other architecture
  // are not installed.
  tree.run(`dpkg --force-architecture --force-depends -i ${copyPackages(tree, other).join(' ')}`)
  const lib = join(tree.root, 'usr/lib/posture-collector')
  const [emulator = '', ...args] = EMULATED[other]
  const seen = execFileSync(
    emulator,
    [...args, join(lib, 'node'), join(lib, 'posture-collector.cjs'), 'selftest', '--json'],
    {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  t.notMatch(seen, /missed/)
  tree.run(`dpkg --force-depends -P ${PROGRAMS.join(' ')}`)
  t.notOk(existsSync(lib))
})

t.test('a package contains the listed files', async (t) => {
  for (const program of PROGRAMS) {
    for (const machine of ['x86_64', 'arm64'] as const) {
      const listed = execFileSync('dpkg-deb', ['--contents', debianPackage(program, machine)], { encoding: 'utf8' })
      for (const line of listed.trimEnd().split('\n')) {
        const [mode = '', owner] = line.split(/\s+/)
        t.equal(owner, 'root/root', line)
        t.match(mode, /^d(rwxr-xr-x)$|^-rw-r--r--$|^-rwxr-xr-x$|^-rw-r-----$/, line)
      }
      const file = debianPackage(program, machine)
      execFileSync('sha256sum', ['--check', '--status', `${file}.sha256`], { cwd: join(file, '..') })
      t.ok(statSync(file).size < 60e6, 'less than 60 MB')
    }
  }
})

function files(tree: DebianTree): string[] {
  return execFileSync('find', ['.', '-xdev'], { cwd: tree.root, encoding: 'utf8', maxBuffer: 1 << 28 })
    .split('\n')
    .map((file) => file.slice(1))
}

async function state(machine: Machine, program: string): Promise<string> {
  return (await machine.run(`systemctl show --value -p ActiveState ${program}`)).trim()
}

async function pid(machine: Machine, program: string): Promise<string> {
  return (await machine.run(`systemctl show --value -p MainPID ${program}`)).trim()
}

async function untilOther(machine: Machine, program: string, first: string): Promise<string> {
  await until(async () => {
    const now = await pid(machine, program)
    return now !== '0' && now !== first ? 'started' : ''
  }, /started/)
  return pid(machine, program)
}

async function until(poll: () => Promise<string>, wanted: RegExp): Promise<void> {
  for (let tries = 0; ; tries++) {
    const found = await poll()
    if (wanted.test(found)) return
    if (tries === 300) throw new Error(`no ${wanted} in: ${found}`)
    await later(100)
  }
}

async function scanned(machine: Machine): Promise<Record<string, unknown>> {
  await until(() => machine.try(`posture-admin scan run --org Acme ${STORE}`), /completed/)
  const rows = (await machine.run(`posture-admin scan show --org Acme ${STORE} 2>/dev/null`)).trim().split('\n')
  return Object.fromEntries(
    rows
      .map((row) => JSON.parse(row) as { platform_name?: string; metadata?: { matches: number } })
      .flatMap(({ platform_name, metadata }) =>
        platform_name === undefined || metadata === undefined ? [] : [[platform_name, metadata.matches]],
      ),
  )
}
