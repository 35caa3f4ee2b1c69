//! Certificates of a cluster that is made up for a test.

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams,
    SanType, SerialNumber, date_time_ymd,
};

/// The authority of a cluster.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// The certificate of a task and its key, in PEM.
#[derive(Clone)]
pub struct Card {
    pub cert: String,
    pub key: String,
}

/// Returns what a certificate of `spiffe://cluster.test` and this path says.
pub fn params(path: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    let uri = format!("spiffe://cluster.test{path}");
    let uri = uri.try_into().expect("it is ASCII");
    params.subject_alt_names.push(SanType::URI(uri));
    params.distinguished_name.push(DnType::CommonName, path);
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    params
}

fn key() -> KeyPair {
    KeyPair::generate().expect("there are random numbers")
}

impl Authority {
    /// Makes an authority.
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Authority(CertifiedIssuer::self_signed(params, key()).expect("it is well formed"))
    }

    /// Returns the certificate of the authority.
    pub fn pem(&self) -> String {
        self.0.as_ref().pem()
    }

    /// Signs a certificate.
    pub fn card(&self, params: &CertificateParams) -> Card {
        let key = key();
        let signed = params.signed_by(&key, &self.0).expect("it is well formed");
        Card {
            cert: signed.pem(),
            key: key.serialize_pem(),
        }
    }

    /// Signs a list of revoked certificates, by their numbers.
    pub fn revoked(&self, numbers: &[u64]) -> String {
        let revoked = numbers.iter().map(|number| RevokedCertParams {
            serial_number: SerialNumber::from(*number),
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 1, 1),
            next_update: date_time_ymd(4000, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = list.signed_by(&self.0).expect("it is well formed");
        list.pem().expect("it has a form in PEM")
    }
}

/// Signs a certificate with its own key.
pub fn self_signed(params: &CertificateParams) -> Card {
    let key = key();
    let signed = params.self_signed(&key).expect("it is well formed");
    Card {
        cert: signed.pem(),
        key: key.serialize_pem(),
    }
}
