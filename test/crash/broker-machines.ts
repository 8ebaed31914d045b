import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Brokers as BrokerConnection } from '../../engine/cluster/log/brokers.ts'
import { BrokerDisk, restorePower, stopPower } from '../support/broker-disks.ts'
import { BrokerNetwork } from '../support/broker-network.ts'
import { BROKER_COUNT, Brokers } from '../support/brokers.ts'
import { keepNamespacesPrivate } from '../support/namespace.ts'
import { REPOSITORY } from '../support/programs.ts'
import { SteppedClock } from '../support/stepped-clock.ts'
import { quietLog } from '../support/store.ts'
import { testFolder } from '../support/test-folder.ts'
import { until } from '../support/wait.ts'
import { type Partition, partitions, powerFailures } from './broker-faults.ts'
import { type BrokerFaults, crashRun } from './crash-run.ts'
import { MessageSender } from './message-sender.ts'

/*
 * The cases of broker-machines.full.test.ts. Runs in private namespaces. CRASH_SEED repeats the
 * choices. CRASH_FAULTS is the number of power failures, and of partitions.
 */
const SEED = Number(process.env['CRASH_SEED'] ?? Math.floor(Date.now() / 86_400_000))
const FAULTS = Number(process.env['CRASH_FAULTS'] ?? 2)
const KILLS_PER_FAULT = 3
const ALL = [0, 1, 2] as const
const DISK_MEGABYTES = 1024
/** Less than three quarters of a broker's disk, which NATS offers to streams. */
const BROKER_EVENTS_MAX_MB = 64
/** This many messages are acknowledged before the next step of a test. */
const MESSAGES = 100
const MESSAGES_PER_FAULT = 50
/** Forward from the time of the brokers, because their certificate is not valid before. */
const CLOCK_STEP_SECONDS = 7200

keepNamespacesPrivate()
const network = new BrokerNetwork()
let clusters = 0

interface Machines {
  readonly directory: string
  readonly brokers: Brokers
  readonly disks: readonly BrokerDisk[]
}

/** Three brokers on loopback, each with its own disk. */
async function startOnDisks(t: Test, syncInterval = 'always'): Promise<Machines> {
  const directory = testFolder(t)
  const configuration = join(directory, 'nats.conf')
  const text = readFileSync(join(REPOSITORY, 'deploy/nats/nats.conf'), 'utf8')
  writeFileSync(configuration, text.replace('sync_interval: always', `sync_interval: ${syncInterval}`))
  const disks = ALL.map((index) => new BrokerDisk(t, join(directory, `disk-${index}.ext4`), DISK_MEGABYTES))
  // An address of these brokers only, so that no connection of another program has their ports.
  const address = `127.98.0.${++clusters}`
  const hosts = disks.map(({ data }) => ({ address, data, through: [] }))
  return { directory, brokers: await Brokers.start(t, { directory, configuration, hosts }), disks }
}

/**
 * Collector and service are killed as well, and the clock of the service steps at each fault.
 * Before each fault, the brokers acknowledge messages of another sender.
 */
async function crash(
  t: Test,
  directory: string,
  brokers: Brokers,
  faults: BrokerFaults,
  { keepsMessages }: { readonly keepsMessages: boolean },
): Promise<void> {
  const sender = await MessageSender.start(t, brokers, { createStream: false })
  const clock = new SteppedClock(directory)
  const report = await crashRun({
    directory,
    environment: clock.environment,
    kills: KILLS_PER_FAULT * FAULTS,
    seed: SEED,
    queriesPerCapture: FAULTS >= 20 ? 400_000 : 50_000,
    brokers: {
      parameters: [...faults.parameters, '--broker-events-max-mb', `${BROKER_EVENTS_MAX_MB}`],
      faults: FAULTS,
      async cause(random) {
        await sender.more(MESSAGES_PER_FAULT)
        clock.step(random.below(CLOCK_STEP_SECONDS))
        await faults.cause(random)
      },
    },
  })
  t.same(report.differences, [])
  t.ok(report.matches > 10_000, `${report.matches} matches`)
  t.ok(report.brokerFaults >= FAULTS, `${report.brokerFaults} faults`)
  await sender.stop()
  const lost = await sender.lost()
  const found = `${lost.length} of ${sender.acknowledged.length} acknowledged messages are lost`
  if (keepsMessages) t.same(lost, [], found)
  else t.comment(found)
  t.comment(JSON.stringify(report))
}

// Both groups mostly wait.
t.jobs = 2

t.test(`every match is in a scan exactly once, seed ${SEED}`, async (t) => {
  t.test('after power failures', async (t) => {
    const { directory, brokers, disks } = await startOnDisks(t)
    let cut = 0
    const count = (machines: number) => {
      cut += machines
    }
    await crash(t, directory, brokers, powerFailures(brokers, disks, FAULTS, count), { keepsMessages: true })
    t.comment(`${cut} machines lost their power`)
  })

  t.test('after partitions of the network', async (t) => {
    const directory = testFolder(t)
    const hosts = network.hosts(join(directory, 'brokers'))
    const brokers = await Brokers.start(t, { directory: join(directory, 'brokers'), hosts })
    const counts = new Map<Partition, number>()
    const count = (kind: Partition) => counts.set(kind, (counts.get(kind) ?? 0) + 1)
    // NATS 2.15.1 lost acknowledged messages of the additional sender in 4 of 10 runs with
    // CRASH_SEED=20785, those after a broker whose packets arrive nowhere. Compare
    // https://github.com/nats-io/nats-server/issues/7545. Services had read them before.
    await crash(t, directory, brokers, partitions(brokers, network, FAULTS, count), { keepsMessages: false })
    t.comment(JSON.stringify(Object.fromEntries(counts)))
  })
})

t.test('brokers keep the messages that they acknowledged', async (t) => {
  // The second row shows that a power failure of this test loses what is not flushed.
  for (const [syncInterval, loses] of [
    ['always', false],
    ['"2m"', true],
  ] as const) {
    t.test(`a power failure of all brokers with sync_interval ${syncInterval}`, async (t) => {
      const { brokers, disks } = await startOnDisks(t, syncInterval)
      const sender = await MessageSender.start(t, brokers, { createStream: true })
      await sender.more(MESSAGES)
      await stopPower(brokers, disks, ALL)
      await sender.stop()
      restorePower(brokers, disks, ALL)
      const lost = await sender.lost()
      t.equal(lost.length > 0, loses, `${lost.length} of ${sender.acknowledged.length} acknowledged messages are lost`)
    })
  }

  t.test('a broker with a full disk does not stop the others, and returns when it is started again', async (t) => {
    const { brokers, disks } = await startOnDisks(t)
    const sender = await MessageSender.start(t, brokers, { createStream: true })
    await sender.more(MESSAGES)
    const { leader } = await sender.stream()
    const full = Number(leader.at(-1))
    disks[full]?.fillUpTo(0)
    await until('no other leader', async () => (await sender.stream()).leader !== leader)
    await sender.more(MESSAGES)
    t.ok(
      /JetStream out of .*resources, will be DISABLED/.test(brokers.output.text),
      'NATS stops JetStream on the broker',
    )
    const { servers, seedFile: credentialsFile, caFile } = brokers
    const options = { servers, credentialsFile, caFile }
    const connection = await BrokerConnection.open(options, quietLog, (fault) => t.fail(fault.message))
    t.pass('the service starts')
    await connection.close()

    disks[full]?.free()
    await sender.more(MESSAGES)
    t.notOk((await sender.stream()).current.includes(leader), 'space alone does not help')
    await brokers.kill(full)
    brokers.restart(full)
    await until('not all messages', async () => (await sender.stream()).current.includes(leader))
    // Now a quorum needs this broker.
    await brokers.kill((full + 1) % BROKER_COUNT)
    await sender.more(MESSAGES)
    await sender.stop()
    t.same(await sender.lost(), [], 'no acknowledged message is lost')
  })
})
