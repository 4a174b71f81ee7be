//! A cluster of real nats-servers, owned by one test.

use std::time::Duration;

use slipstream::{Connection, StoreConfig};

use crate::backend::Bucket;
use crate::server::{NatsServer, connect};

/// Three servers that know each other.
pub(crate) struct Cluster {
    servers: Vec<NatsServer>,
}

impl Cluster {
    /// With a bucket of three copies. The servers must know each other's ports before they start,
    /// and somebody else may take one in between; then there is another try.
    pub(crate) async fn start() -> (Self, Bucket) {
        for _ in 0..5 {
            let cluster = Self::on_free_ports();
            if let Some(bucket) = cluster.bucket().await {
                return (cluster, bucket);
            }
        }
        panic!("three servers do not find each other");
    }

    /// Makes the bucket, or takes the one that exists.
    async fn bucket(&self) -> Option<Bucket> {
        let connection = connect(&self.url()).await;
        let replicated = StoreConfig { num_replicas: 3, ..StoreConfig::default() };
        for _ in 0..15 {
            // Until it has a leader the cluster forgets what it is asked.
            let made = connection.store("b", &replicated);
            if let Ok(Ok(store)) = tokio::time::timeout(Duration::from_secs(2), made).await {
                return Some(Bucket::of(store));
            }
        }
        None
    }

    /// All of them go down; something is done with each; they come back.
    pub(crate) async fn while_down<T>(
        &mut self,
        work: impl FnMut(&NatsServer) -> T,
    ) -> (Bucket, Vec<T>) {
        self.servers.iter_mut().for_each(NatsServer::kill);
        let done = self.servers.iter().map(work).collect();
        self.servers.iter_mut().for_each(NatsServer::restart);
        (self.bucket().await.expect("a leader"), done)
    }

    fn on_free_ports() -> Self {
        let free = [(); 3].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = free.each_ref().map(|listener| listener.local_addr().unwrap().port());
        drop(free);
        let routes = ports.map(|port| format!("nats-route://127.0.0.1:{port}")).join(",");
        let start = |at: usize| {
            let (name, listen) = (format!("n{at}"), format!("nats://127.0.0.1:{}", ports[at]));
            let named = ["--name", &name, "--cluster_name", "c"];
            let joined = ["--cluster", &listen, "--routes", &routes];
            NatsServer::start_with(&[named, joined].concat())
        };
        Self { servers: (0..3).map(start).collect() }
    }

    pub(crate) fn url(&self) -> String {
        self.servers.iter().map(NatsServer::url).collect::<Vec<_>>().join(",")
    }

    pub(crate) fn named(&mut self, name: &str) -> &mut NatsServer {
        let at: usize = name.strip_prefix('n').unwrap().parse().unwrap();
        &mut self.servers[at]
    }
}
