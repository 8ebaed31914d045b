import { CLIENT_NETWORKS_MAX } from '../../engine/limits.ts'
import type { NamedNetwork } from '../../engine/store/client-names.ts'
import { ClientLink } from '../design/client-columns.tsx'
import { textColumn } from '../design/columns.tsx'
import { CsvLink } from '../design/csv-link.tsx'
import { Field, FileContent, FormError } from '../design/form.tsx'
import { NumberedPages } from '../design/pages-links.tsx'
import { Card, countOf, countText, Empty, Notice, PageHead } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import { TwoStep } from '../design/two-step.tsx'
import type { FormState } from '../form.ts'
import { type ClientsView, HOSTS_FOUND_MAX } from '../views/clients.ts'

export const CLIENTS_PATH = '/clients'
export const NETWORKS_PATH = '/clients/networks'

export interface ClientsProps {
  readonly view: ClientsView
  readonly query: URLSearchParams
  readonly networkForm: FormState
  readonly namesForm: FormState
  /** The maximum size of the names in a form, in bytes. */
  readonly namesBytesMax: number
  readonly mayName: boolean
  /** Why the search led to no client; '' if it did. */
  readonly problem: string
  readonly done: string
}

const DONE: Readonly<Record<string, string>> = {
  named: 'The network has a name. Clients in it are shown with it',
  removed: 'The name of the network is removed',
  imported: 'The names are imported. They replace the ones before',
}

/** Finds a client, and names addresses and networks. */
export function Clients(props: ClientsProps) {
  const { view, mayName, done } = props
  const title = DONE[done]
  return (
    <>
      <PageHead title="Clients" about="Who uses AI platforms: find a client by its address, name or user" />
      {title !== undefined && <Notice title={title} />}
      <Search {...props} />
      <div class="wide">
        <Networks {...props} />
        {mayName && view.mode === 'full' && <Names {...props} />}
      </div>
    </>
  )
}

function Search({ view: { search, found, mode }, problem }: ClientsProps) {
  return (
    <Card title="Find a client" note="The audit log records whose use you read">
      <div class="stack">
        <form class="filters" method="get" action={CLIENTS_PATH}>
          <div class="field">
            <label for="q">Address, host name or user</label>
            <input id="q" name="q" type="search" value={search} required maxLength={255} />
          </div>
          <button class="first" type="submit">
            Find
          </button>
        </form>
        {problem !== '' && found.length === 0 && (
          <p class="error" role="alert">
            {problem}
          </p>
        )}
        {mode === 'off' && <p class="muted">This organization keeps no clients.</p>}
        {found.length > 0 && (
          <ul class="lines">
            {found.map(({ address, name }) => (
              <li key={address}>
                <span class="break">{name}</span>
                {ClientLink({ client: address })}
              </li>
            ))}
          </ul>
        )}
        {found.length === HOSTS_FOUND_MAX && (
          <p class="small muted">The first {HOSTS_FOUND_MAX} addresses. Enter more of the name to find others.</p>
        )}
        <p class="small muted">
          Or open <a href="/platforms">a platform</a>, and see who uses it.
        </p>
      </div>
    </Card>
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

function Networks({ view: { networks }, query, networkForm: form, mayName }: ClientsProps) {
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

function Names({ view: { namesTotal }, namesForm: form, namesBytesMax }: ClientsProps) {
  const note = namesTotal === 0 ? 'none yet' : `${countOf(namesTotal, 'address has', 'addresses have')} one`
  return (
    <Card title="Host names" note={note}>
      <form class="stack" method="post" action={`${CLIENTS_PATH}/names`}>
        <FormError form={form} />
        <p class="small muted">
          Lines with an address and a name, or the leases of ISC dhcpd, Kea or dnsmasq. An import replaces all names.
        </p>
        <FileContent
          form={form}
          accept=".csv,.leases,.txt"
          hint={`At most ${namesBytesMax / 1024} KiB. posture-admin client names import reads larger files.`}
        />
        <div>
          <button type="submit">Import Names</button>
        </div>
      </form>
    </Card>
  )
}
