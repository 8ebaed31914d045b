import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { Administration } from '../../engine/admin/administration.ts'
import { checkedChannel, type GivenChannel } from '../../engine/admin/alert-settings.ts'
import { sealedChannel } from '../../engine/admin/alerts.ts'
import { AlertEvaluator } from '../../engine/alert/evaluator.ts'
import { DAY_MS, dayOf, HOUR_MS, MINUTE_MS } from '../../engine/kernel/process/clock.ts'
import { SecretsKey, secretsKeyFile } from '../../engine/kernel/process/secrets-key.ts'
import { runScan } from '../../engine/scan/scan-runner.ts'
import type { AlertSeverity } from '../../engine/store/alerts.ts'
import { SKETCH_BYTES } from '../../engine/store/candidates.ts'
import type { FrameworkId } from '../../engine/store/framework.ts'
import { newUuid } from '../../engine/store/keys.ts'
import { clientSecretContext, ROLES } from '../../engine/store/members.ts'
import type { Organization } from '../../engine/store/organizations.ts'
import { newCounts, Outcome } from '../../engine/store/outcomes.ts'
import { SERVICE_WIDE } from '../../engine/store/own-platforms.ts'
import type { SourceDelta } from '../../engine/store/sources.ts'
import type { Passkey } from '../../engine/store/users.ts'
import { loadCatalog } from '../../registry/catalog.ts'
import type { Browser, TestConsole } from './console.ts'
import { report } from './coverage.ts'
import { platform, writeRegistryFile } from './own-platforms.ts'
import { registries, Sender } from './store.ts'

/** Chooses the texts of an organization's data, so that tests can find them in pages. */
export interface Words {
  /** One line for people, such as a label. `what` describes it. */
  text(what: string): string
  /** A host name. */
  host(what: string): string
  /** An IPv4 address. */
  address(): string
}

/** Words that people can read. */
export function plainWords(): Words {
  let addresses = 0
  return {
    text: (what) => what,
    host: (what) => `${what}.corp.example`,
    address: () => `192.0.2.${++addresses}`,
  }
}

/** The hash of a random password. */
export const UNKNOWN_PASSWORD =
  '$argon2id$v=19$m=19456,t=2,p=1$nlhV97pjSjQa0gF8eGOO9g$Iio/7tb7+wgbmiEUB6psjji0pDOD2u2dkv0wogx6hS4'

/** How much there is of each kind. */
export interface Amounts {
  readonly platforms: number
  readonly sources: number
}

const FEW: Amounts = { platforms: 6, sources: 3 }
/** A name of each platform that a client can ask for. */
const NAMES = loadCatalog().platforms.flatMap(({ domains }) =>
  domains
    .map(({ domain }) => domain)
    .filter((domain) => !domain.includes('*'))
    .slice(0, 1),
)

/**
 * Gives an organization data of every kind, as the use cases and a scan store them, so that every
 * page has content. Returns the browser of its owner, whose user has a password and two sessions.
 */
export function populate(site: TestConsole, organization: Organization, words: Words, amounts = FEW): Browser {
  const admin = new Administration(site.store, site.clock)
  const owner = addMembers(site, admin, organization, words)
  addIdentityProvider(site, organization, words)
  addSecrets(site, admin, organization, words)
  addOwnPlatform(site, admin, organization, words)
  addFramework(admin, organization, words)
  addArrivals(site, organization, words, amounts)
  addAlertChannels(site, admin, organization, words)
  addFindings(site, admin, organization, words, amounts)
  addResponse(site, admin, organization, words)
  addAssessments(site, admin, organization, words)
  return owner
}

function addMembers(site: TestConsole, admin: Administration, organization: Organization, words: Words): Browser {
  const { store } = site
  const name = words.text('owner')
  const owner = site.signIn(name, 'owner', organization)
  site.signIn(name, 'owner', organization)
  store.environment.write(() => {
    const user = store.users.byName(name)
    if (user === undefined) return
    store.users.put({ ...user, passwordHash: UNKNOWN_PASSWORD })
    store.passkeys.put(passkeyOf(site, user.id, words.text('laptop')))
  })
  for (const role of ROLES) admin.members.add(organization, words.text(`other ${role}`), role)
  const invited = words.text('invited')
  admin.members.add(organization, invited, 'member')
  admin.accountLinks.invite(organization, invited)
  const removed = words.text('removed')
  admin.members.add(organization, removed, 'viewer')
  admin.members.remove(organization, removed)
  return owner
}

function passkeyOf({ origin, clock }: TestConsole, userId: string, name: string): Passkey {
  return {
    ...{ id: newUuid(), userId, name, rpId: new URL(origin).hostname },
    credentialId: randomBytes(16).toString('base64url'),
    publicKey: randomBytes(64).toString('base64url'),
    ...{ counter: 0, transports: ['internal'], isSyncable: true, isSynced: true },
    ...{ createdAtMs: clock.nowMs(), usedAtMs: 0, blockedAtMs: 0 },
  }
}

/** No provider answers at its address. */
function addIdentityProvider({ store, directory, clock }: TestConsole, organization: Organization, words: Words): void {
  const key = new SecretsKey(secretsKeyFile('', directory))
  const organizationId = organization.id
  const issuer = `https://localhost:1/${words.host('login')}`
  const clientSecret = key.seal(words.text('client secret'), clientSecretContext({ organizationId, issuer }))
  const claims = { scopes: ['openid', 'email'], nameClaim: 'email', groupsClaim: 'groups' }
  const groups = [{ group: words.text('security team'), role: 'admin' as const }]
  const roles = { groups, defaultRole: 'viewer' as const, changedAtMs: clock.nowMs() }
  const client = { name: words.text('Company account'), issuer, clientId: words.text('client'), clientSecret }
  store.environment.write(() => store.identityProviders.put({ organizationId, ...client, ...claims, ...roles }))
}

function addSecrets(site: TestConsole, admin: Administration, organization: Organization, words: Words): void {
  for (const what of ['dashboard', 'report']) admin.apiKeys.create(organization, words.text(what), ['scores:read'])
  const revoked = admin.apiKeys.create(organization, words.text('revoked key'), ['scores:read'])
  admin.apiKeys.revoke(organization, revoked.record.id)
  const token = admin.tokens.generate(organization, words.text('firewalls')).record
  admin.tokens.generate(organization, words.text('unused token'))
  admin.tokens.bind(organization, token.id, [{ network: `${words.address()}/32`, port: 0 }])
  const ended = admin.tokens.generate(organization, words.text('revoked token')).record
  admin.tokens.revoke(organization, ended.id)
  const [key] = site.store.apiKeys.ofOrganization(organization.id)
  const use = { organizationId: organization.id, keyId: key?.id ?? '', timeMs: site.clock.nowMs() - HOUR_MS }
  site.store.environment.write(() => site.store.keyUses.put(use))
}

function addOwnPlatform(site: TestConsole, admin: Administration, organization: Organization, words: Words): void {
  const own = {
    ...platform(`own-${randomBytes(6).toString('hex')}`, ownHost(words)),
    name: words.text('Custom platform'),
  }
  const file = writeRegistryFile(join(site.directory, 'own.json'), [own])
  admin.ownPlatforms.add(organization, site.registry.catalogOf(SERVICE_WIDE), file)
}

function addFramework(admin: Administration, organization: Organization, words: Words): void {
  const items = [{ id: 'A-1', title: words.text('Own item'), weight: 1, priority: 1, recommendation: 'Do it.' }]
  const categories = [{ name: words.text('Own category'), weight: 1, items }]
  const name = words.text('Own framework')
  admin.frameworks.add(organization, { id: 'own-one', name, template: { version: '00000000', categories } })
}

const ownHosts = new WeakMap<Words, string>()

/** The domain of the custom platform, the same at each call. */
function ownHost(words: Words): string {
  const host = ownHosts.get(words) ?? words.host('llm')
  ownHosts.set(words, host)
  return host
}

function addArrivals(
  { store, clock }: TestConsole,
  organization: Organization,
  words: Words,
  { sources }: Amounts,
): void {
  const nowMs = clock.nowMs()
  const [token] = store.monitoringTokens.ofOrganization(organization.id)
  const base = {
    organizationId: organization.id,
    tokenId: token?.id ?? '',
    zoneMinutes: 0,
    timesUnread: 0,
    hasUnknownToken: false,
  }
  const deltas = Array.from({ length: sources }, (_, at): SourceDelta => {
    const counts = newCounts()
    counts[Outcome.stored] = 90
    counts[Outcome.unknown] = at % 2 === 0 ? 10 : 0
    const sample = at % 2 === 0 ? words.text('<134> a line that nobody understands') : ''
    const lastSeenMs = nowMs - at * HOUR_MS
    const sender = { listener: at % 3 === 0 ? 'udp' : 'tls', address: words.address(), host: words.host(`fw-${at}`) }
    const arrived = { lastSeenMs, received: 100, counts: [...counts], formats: at === 0 ? {} : { squid: 90 } }
    return { ...base, ...sender, ...arrived, sample }
  })
  const counters = { packets: 900, packets_lost: 100, names: 80, hellos_named: 80, hellos_ech: 20, doh_sessions: 20 }
  store.environment.write(() => {
    store.sources.add(deltas)
    store.candidates.add(
      ['acme-llm.example', 'notes.ai', 'dismissed.ai'].map((name) => {
        const seen = { firstSeenMs: nowMs - HOUR_MS, lastSeenMs: nowMs, requests: 12, withAi: 3 }
        return { organizationId: organization.id, name, ...seen, clients: new Uint8Array(SKETCH_BYTES).fill(1, 0, 5) }
      }),
      () => true,
    )
    const dismissed = store.candidates.get(organization.id, 'dismissed.ai')
    if (dismissed !== undefined) store.candidates.put(organization.id, { ...dismissed, dismissedAtMs: nowMs })
    for (const at of [0, 1]) {
      const instance = randomBytes(8).toString('hex')
      store.coverage.add(organization.id, report({ instance, counters }), nowMs - at * 2 * HOUR_MS)
    }
  })
}

/** Two scans. The organization approved one of the platforms before the second. */
function addFindings(
  { store, clock, registry }: TestConsole,
  admin: Administration,
  organization: Organization,
  words: Words,
  { platforms }: Amounts,
): void {
  const sender = new Sender()
  const clients = Array.from({ length: 3 }, () => words.address())
  const user = words.text('jdoe')
  const traffic = { user, bytesSent: 12_345, bytesReceived: 2_345_678 }
  admin.clientNames.addNetwork(organization, `${clients[0]}/32`, words.text('Berlin office'))
  const laptop = () => ({ name: words.text('laptop'), fromMs: 0, toMs: Number.POSITIVE_INFINITY })
  admin.clientNames.importHosts(organization, new Map(clients.map((client) => [client, [laptop()]])))
  const manager = `boss@${words.host('mail')}`
  const group = { name: words.text('Finance'), members: [user], people: 1, manager }
  admin.clientGroups.replace(organization, { mode: 'full', keyId: '', groups: [group] })
  admin.savedViews.save(organization, { name: words.text('Waiting'), path: '/platforms', query: 'state=waiting' })
  const names = [ownHost(words), ...NAMES.slice(0, platforms)]
  const events = names.flatMap((name, at) =>
    clients.slice(0, 1 + (at % clients.length)).map((client, index) => {
      const more = index === 0 ? traffic : {}
      return sender.event(name, clock.nowMs() - MINUTE_MS, { client, count: at + 1, ...more })
    }),
  )
  store.environment.write(() => store.buffer.append(organization.id, events))
  runScan(store, registry, organization.id, 'schedule', clock)
  const [first] = loadCatalog().platforms
  admin.approvals.add(organization, registry.catalogOf(organization.id), [first?.id ?? ''])
  runScan(store, registry, organization.id, 'administrator', clock)
}

/** No receiver listens at their addresses. */
function addAlertChannels(
  { directory }: TestConsole,
  admin: Administration,
  organization: Organization,
  words: Words,
): void {
  const key = new SecretsKey(secretsKeyFile('', directory))
  const add = (name: string, severityMin: AlertSeverity, given: GivenChannel): void => {
    const checked = checkedChannel(given)
    if (checked.kind === 'invalid') throw new Error(JSON.stringify(checked.faults))
    const { settings } = checked
    admin.alerts.addChannel(organization, sealedChannel(key, organization, { name, severityMin, settings }))
  }
  const host = words.host('mail')
  add(words.text('soc'), 'low', { kind: 'webhook', url: `https://${words.host('alerts')}/posture` })
  add(words.text('mail'), 'high', { kind: 'smtp', host, from: `posture@${host}`, to: [`soc@${host}`] })
}

/** Alerts with every kind of delivery, links of block lists, and the result of the day before. */
function addResponse(
  { store, clock }: TestConsole,
  admin: Administration,
  organization: Organization,
  words: Words,
): void {
  const { id } = organization
  const nowMs = clock.nowMs()
  new AlertEvaluator(store, registries, clock).evaluate(id)
  admin.alerts.mute(organization, 'coverage-low', true)
  admin.alerts.setThreshold(organization, 'platform-volume', 500)
  const { alertChannels, history } = store
  const channels = alertChannels.ofOrganization(id)
  const today = dayOf(nowMs)
  store.environment.write(() => {
    for (const { id: channelId, kind } of channels) {
      const isWebhook = kind === 'webhook'
      const deliver = alertChannels.first(id, channelId)
      if (deliver !== undefined && (!isWebhook || alertChannels.waiting(id, channelId) > 1)) {
        alertChannels.deliver(id, channelId, deliver.sequence, nowMs)
      }
      const fail = isWebhook ? alertChannels.first(id, channelId) : undefined
      if (fail === undefined) continue
      alertChannels.postpone(id, channelId, '422 Unprocessable Entity', nowMs)
      alertChannels.fail(id, channelId, fail.sequence, '422 Unprocessable Entity', nowMs)
    }
    const last = history.get(id, today)
    if (last === undefined) return
    const platforms = last.platforms.slice(1)
    const platformsDiscovered = platforms.filter(({ use }) => use === 'ai').length
    const aiCapableCount = platforms.filter(({ use }) => use === 'ai_capable').length
    const summary = { ...last.summary, platformsDiscovered, aiCapableCount }
    history.put(id, today - 1, { ...last, completedAtMs: last.completedAtMs - DAY_MS, summary, platforms })
  })
  const { blockListLinks } = admin
  blockListLinks.create(organization, words.text('firewall'), { blocks: 'not-approved', riskMin: 70 })
  const ended = blockListLinks.create(organization, words.text('revoked link'), { blocks: 'rejected', riskMin: 0 })
  blockListLinks.revoke(organization, ended.record.id)
}

/**
 * One that is completed, whose recommendations have every status; one that can be completed; and
 * one in progress.
 */
function addAssessments({ store }: TestConsole, admin: Administration, organization: Organization, words: Words): void {
  const answered = (framework: FrameworkId, title: string, countMax = Number.POSITIVE_INFINITY): string => {
    const assessment = admin.assessments.create(organization, framework, words.text(title))
    const items = store.assessments.categories(assessment).flatMap((category) => category.items)
    for (const { id } of items.slice(0, countMax)) {
      admin.assessments.answer(organization, assessment.id, id, 'no', words.text('Evidence'))
    }
    return assessment.id
  }
  admin.assessments.complete(organization, answered('ai-security', 'Spring'))
  const [first, second, third] = store.recommendations.ofOrganization(organization.id)
  admin.recommendations.setStatus(organization, first?.id ?? '', 'in_progress')
  admin.recommendations.setStatus(organization, second?.id ?? '', 'completed')
  admin.recommendations.setStatus(organization, third?.id ?? '', 'dismissed', words.text('Reason'))
  answered('ai-security', 'Summer')
  answered('hipaa', 'Autumn', 1)
}
