"""Orders of streams: which examples each item of an epoch is made of.

They are known without reading data, before, during and after an epoch.
"""
from fuel.orders.omitted import leave_out
from fuel.orders.order import StreamOrder
from fuel.orders.table import ExamplePlace, OrderTable, WindowPlace

__all__ = ['ExamplePlace', 'OrderTable', 'StreamOrder', 'WindowPlace',
           'leave_out']
