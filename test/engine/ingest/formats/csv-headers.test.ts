import t from 'tap'
import { MessageReader } from '../../../support/log-rows.ts'

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
