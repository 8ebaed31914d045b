import { CLIENT_NETWORKS_MAX } from '../../engine/limits.ts'
import type { NamedNetwork } from '../../engine/store/client-names.ts'
import type { ClientMode } from '../../engine/store/organizations.ts'
import { Field, FileContent, FormError, TwoStep } from '../design/form.tsx'
import type { Paged } from '../design/list.tsx'
import { CsvLink, NumberedPages } from '../design/list.tsx'
import { Card, countOf, countText, Empty, Notice, PageHead } from '../design/parts.tsx'
import { type Column, Table, textColumn } from '../design/table.tsx'
import type { FormState } from '../form.ts'

export const CLIENT_NAMES_PATH = '/client-names'
export const NETWORKS_PATH = `${CLIENT_NAMES_PATH}/networks`
/** Reading names of this size takes 50 ms. posture-admin client names import reads larger files. */
export const NAMES_BYTES_MAX = 512 * 1024

export interface ClientNamesProps {
  readonly networks: Paged<NamedNetwork>
  /** Addresses with a name. */
  readonly namesTotal: number
  readonly mode: ClientMode
  readonly query: URLSearchParams
  readonly networkForm: FormState
  readonly namesForm: FormState
  readonly mayName: boolean
  readonly done: string
}

const DONE: Readonly<Record<string, string>> = {
  named: 'The network has a name. Clients in it are shown with it',
  removed: 'The name of the network is removed',
  imported: 'The names are imported. Earlier use keeps the names of its time',
}

/** Names addresses and networks. */
export function ClientNames(props: ClientNamesProps) {
  const { mode, mayName, done } = props
  const title = DONE[done]
  return (
    <>
      <PageHead
        title="Names of clients"
        about="Clients are shown and found with the names of their addresses and networks"
      />
      {title !== undefined && <Notice title={title} />}
      <div class="wide">
        <Networks {...props} />
        {mayName && mode === 'full' && <Names {...props} />}
      </div>
    </>
  )
}

export const NETWORK_COLUMNS: readonly Column<NamedNetwork>[] = [
  {
    ...textColumn('network', 'Network', ({ network }: NamedNetwork) => network),
    cell: ({ network }) => <span class="mono">{network}</span>,
  },
  {
    ...textColumn('name', 'Name', ({ name }: NamedNetwork) => name),
    cell: ({ name }) => <span class="break">{name}</span>,
  },
]

const REMOVE: Column<NamedNetwork> = {
  id: 'remove',
  name: 'Remove',
  cell: ({ network }) => (
    <TwoStep
      action={`${NETWORKS_PATH}/remove`}
      verb="Remove"
      label={network}
      effect="from the named networks"
      fields={{ network }}
    />
  ),
  quiet: true,
}

function Networks({ networks, query, networkForm: form, mayName }: ClientNamesProps) {
  return (
    <div class="column">
      {networks.total === 0 ? (
        <Empty title="No network has a name">
          <p class="muted">Name your offices and VPNs, so that each client is shown with its place.</p>
        </Empty>
      ) : (
        <Card
          title="Networks"
          note={
            <span class="row">
              {countText(networks.total)} of {countText(CLIENT_NETWORKS_MAX)} <CsvLink path={NETWORKS_PATH} />
            </span>
          }
          bare
        >
          <Table
            id="networks"
            label="Networks"
            columns={mayName ? [...NETWORK_COLUMNS, REMOVE] : NETWORK_COLUMNS}
            rows={networks.rows}
          />
        </Card>
      )}
      <NumberedPages of={networks} query={query} />
      {mayName && (
        <Card title="Name a network">
          <form class="stack" method="post" action={NETWORKS_PATH}>
            <FormError form={form} />
            <Field name="network" label="Network" form={form} required maxLength={60} hint="Such as 10.2.0.0/16." />
            <Field name="name" label="Name" form={form} required maxLength={255} hint="Such as Berlin office." />
            <div>
              <button class="first" type="submit">
                Save Network
              </button>
            </div>
          </form>
        </Card>
      )}
    </div>
  )
}

function Names({ namesTotal, namesForm: form }: ClientNamesProps) {
  const note = namesTotal === 0 ? 'none yet' : `${countOf(namesTotal, 'address has', 'addresses have')} one`
  return (
    <Card title="Host names" note={note}>
      <form class="stack" method="post" action={`${CLIENT_NAMES_PATH}/hosts`}>
        <FormError form={form} />
        <p class="small muted">
          Lines with an address, a name, and optionally from and to, or the leases of ISC dhcpd, Kea or dnsmasq. Import
          all names together: other addresses have no name from now on. Earlier use keeps the names of its time.
        </p>
        <FileContent
          form={form}
          accept=".csv,.leases,.txt"
          hint={`At most ${NAMES_BYTES_MAX / 1024} KiB. posture-admin client names import reads larger files.`}
        />
        <div>
          <button type="submit">Import Names</button>
        </div>
      </form>
    </Card>
  )
}
