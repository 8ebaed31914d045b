import t from 'tap'
import { MessageReader } from '../../support/log-rows.ts'

t.test('one domain, one address and one time in usual words, in any order', async (t) => {
  const words = {
    time: 'timestamp datetime event_time Zeitstempel Horodatage Fecha/hora Data/ora Data/hora Datum/tijd Tijdstip'.split(
      ' ',
    ),
    address: [
      'client',
      'address',
      'device_ip',
      'IP-Adresse',
      'Adresse IP',
      'Dirección IP',
      'Indirizzo IP',
      'Endereço IP',
      'IP-adres',
    ],
    domain: ['domain', 'query', 'Domäne', 'Domaine', 'Dominio', 'Domínio', 'Domein', 'domain_name'],
  }
  const cells = { time: '2026-11-20 09:15:02', address: '10.0.0.5', domain: 'claude.ai' }
  const orders = [
    ['time', 'address', 'domain'],
    ['domain', 'time', 'address'],
    ['address', 'domain', 'time'],
  ] as const
  for (const time of words.time) {
    for (const address of words.address) {
      for (const domain of words.domain) {
        const names = { time, address, domain }
        for (const order of orders) {
          const reader = new MessageReader()
          const header = order.map((each) => names[each]).join(';')
          t.equal(reader.read(header).verdict, 'skip', header)
          const read = reader.read(order.map((each) => `"${cells[each]}"`).join(';'))
          t.match(
            read,
            { verdict: 'event', host: 'claude.ai', client: '10.0.0.5', time: /^2026-11-20T09:15:02/ },
            header,
          )
        }
      }
    }
  }
  const reader = new MessageReader()
  reader.read('datetime,client,fqdn')
  t.match(reader.read('2026-11-20 09:15:02,10.0.0.5,claude.ai'), { verdict: 'event', host: 'claude.ai' })
  for (const [header, row] of [
    ['time,device ip,source user,url', '2026-11-20 09:15:02,10.0.0.1,jdoe,https://claude.ai/'],
    ['time,user,url,address', '2026-11-20 09:15:02,jdoe,https://claude.ai/,104.18.1.1'],
  ] as const) {
    const other = new MessageReader()
    other.read(header)
    t.notMatch(other.read(row), { verdict: 'event' }, 'the address may be of a device or server')
  }
  const leases = new MessageReader()
  leases.read('time,ip,hostname')
  t.match(leases.read('2026-11-20 09:15:02,10.0.0.5,claude.ai'), { verdict: 'ambiguous' })
})

t.test('headers in German, French and Spanish', async (t) => {
  for (const [header, row] of [
    ['Datum;Uhrzeit;Quell-IP;Benutzer;URL;Aktion', '20.11.2026;09:15:02;10.0.0.5;jdoe;https://claude.ai/;blockiert'],
    ['Zeitstempel;Client-IP-Adresse;Angeforderte Domäne', '2026-11-20 09:15:02;10.0.0.5;claude.ai'],
    ['Horodatage,Adresse IP source,Utilisateur,Domaine demandé', '2026-11-20 09:15:02,10.0.0.5,jdoe,claude.ai'],
    ['Date et heure;IP du client;URL;Action', '20/11/2026 09:15:02;10.0.0.5;https://claude.ai/;Bloqué'],
    ['Fecha y hora;Dirección IP de origen;Usuario;Dominio solicitado', '20/11/2026 09:15:02;10.0.0.5;jdoe;claude.ai'],
  ] as const) {
    const reader = new MessageReader()
    t.equal(reader.read(header).verdict, 'skip', header)
    const read = reader.read(row)
    t.match(read, { verdict: 'event', host: 'claude.ai', client: '10.0.0.5' }, header)
    t.match(read.time, '2026-11-20T09:15:02', header)
    if (row.includes('jdoe')) t.equal(read.user, 'jdoe', header)
  }
})
