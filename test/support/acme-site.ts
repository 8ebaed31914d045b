import { Administration } from '../../engine/admin/administration.ts'
import type { Event } from '../../engine/kernel/event/event.ts'
import { runScan } from '../../engine/scan/scan-runner.ts'
import type { Organization } from '../../engine/store/organizations.ts'
import type { Scan } from '../../engine/store/scans.ts'
import { makeOrganization, openStore, registries, Sender, type TestStore } from './store.ts'

/** A store with the organization "Acme", and what tests do with it. */
export interface AcmeSite extends TestStore {
  readonly organization: Organization
  readonly id: string
  /** As the operator. */
  readonly administration: Administration
  readonly sender: Sender
  /** Puts events into the buffer, without the checks of received ones. */
  readonly buffer: (events: readonly Event[]) => void
  readonly scan: (trigger?: Scan['trigger']) => Scan
}

export function acmeSite(...parameters: Parameters<typeof openStore>): AcmeSite {
  const opened = openStore(...parameters)
  const { store, clock } = opened
  const organization = makeOrganization(opened, 'Acme')
  const { id } = organization
  return {
    ...opened,
    organization,
    id,
    administration: new Administration(store, clock),
    sender: new Sender(),
    buffer: (events) => store.environment.write(() => store.buffer.append(id, events)),
    scan: (trigger = 'schedule') => runScan(store, registries, id, trigger, clock),
  }
}
